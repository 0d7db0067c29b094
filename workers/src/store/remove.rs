//! Removing objects and unfinished uploads. Everything here may be done again, and goes on page
//! by page: a prefix may have any number of keys.

use aws_sdk_s3::primitives::DateTime;
use futures_util::future::try_join_all;

use super::{Error, Listed, Store, code, failed};

/// How many are removed at once.
const AT_ONCE: usize = 8;

impl Store {
    /// Removes an object; removing what is not there is no failure.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let delete = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        delete.map(drop).map_err(|error| failed("delete", key, &error))
    }

    /// Removes every object below a prefix, and gives up every upload that is on its way there.
    pub async fn delete_below(&self, prefix: &str) -> Result<(), Error> {
        let now = None;
        // An upload that was finished meanwhile is an object then, so the uploads go first.
        self.abort_below(prefix, now).await?;
        self.delete_older(prefix, now).await.map(drop)
    }

    /// Removes the objects below a prefix that were written before a time, in seconds since 1970;
    /// all of them without one. Says how many.
    pub async fn delete_older(&self, prefix: &str, before: Option<i64>) -> Result<usize, Error> {
        let is_old = |object: &Listed| before.is_none_or(|before| object.is_older(before));
        self.delete_those(prefix, is_old).await
    }

    /// Removes some of the objects below a prefix. Says how many.
    pub async fn delete_those(
        &self,
        prefix: &str,
        which: impl Fn(&Listed) -> bool,
    ) -> Result<usize, Error> {
        let (mut removed, mut page) = (0, None);
        loop {
            let listed = self.list(prefix, page).await?;
            let found: Vec<_> = listed.objects.iter().filter(|object| which(object)).collect();
            for some in found.chunks(AT_ONCE) {
                try_join_all(some.iter().map(|object| self.delete(&object.key))).await?;
            }
            removed += found.len();
            page = listed.next;
            if page.is_none() {
                return Ok(removed);
            }
        }
    }

    /// Gives up the uploads below a prefix that were begun before a time, in seconds since 1970;
    /// all of them without one. Says how many.
    pub async fn abort_below(&self, prefix: &str, before: Option<i64>) -> Result<usize, Error> {
        let (mut aborted, mut next_key, mut next_id) = (0, None, None);
        loop {
            let list = self.client.list_multipart_uploads().bucket(&self.bucket).prefix(prefix);
            let list = list.set_key_marker(next_key).set_upload_id_marker(next_id);
            let page = match list.send().await {
                Ok(page) => page,
                // A store that cannot tell has a rule of its own for them, or keeps them.
                Err(error) if code(&error) == Some("NotImplemented") => return Ok(aborted),
                Err(error) => return Err(failed("list uploads below", prefix, &error)),
            };
            for upload in page.uploads().iter().filter(|u| is_older(u.initiated(), before)) {
                if let (Some(key), Some(id)) = (upload.key(), upload.upload_id()) {
                    self.abort(key, id).await?;
                    aborted += 1;
                }
            }
            next_key = page.next_key_marker().map(str::to_owned);
            next_id = page.next_upload_id_marker().map(str::to_owned);
            if page.is_truncated() != Some(true) || next_key.is_none() {
                return Ok(aborted);
            }
        }
    }

    /// Gives up one upload. One that is not there was finished or given up already.
    pub(super) async fn abort(&self, key: &str, id: &str) -> Result<(), Error> {
        let abort = self.client.abort_multipart_upload().bucket(&self.bucket).key(key);
        match abort.upload_id(id).send().await {
            Ok(_) => Ok(()),
            Err(error) if code(&error) == Some("NoSuchUpload") => Ok(()),
            Err(error) => Err(failed("abort", key, &error)),
        }
    }
}

fn is_older(time: Option<&DateTime>, before: Option<i64>) -> bool {
    before.is_none_or(|before| time.is_some_and(|time| time.secs() < before))
}
