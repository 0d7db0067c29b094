//! Finding what is there when nothing that names it is left. What is found was named by nobody, so
//! there is no digest to hold it against: whoever reads it judges it by what it says.

use bytes::Bytes;

use super::{Error, Store, code, failed};

impl Store {
    /// A page of the folders right below a prefix, each with the slash at its end, and how to ask
    /// for the next page.
    pub async fn folders(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix);
        let found = list.delimiter("/").set_continuation_token(page).send().await;
        let found = found.map_err(|error| failed("list", prefix, &error))?;
        let folders = found.common_prefixes().iter().filter_map(|it| it.prefix.clone()).collect();
        Ok((folders, found.next_continuation_token().map(str::to_owned)))
    }

    /// A small object of which only the key is known; `None` when there is none.
    pub async fn find(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let found = match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(found) => found,
            Err(error) if code(&error) == Some("NoSuchKey") => return Ok(None),
            Err(error) => return Err(failed("get", key, &error)),
        };
        let read = found.body.collect().await;
        read.map(|read| Some(read.into_bytes())).map_err(|error| Error::new("get", key, error))
    }
}
