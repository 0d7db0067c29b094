//! Request and reply: services as `nats micro` lists them. What is asked and answered is others'
//! affair; NATS types do not leave this module.

use async_nats::HeaderMap;
use async_nats::service::{
    self, NATS_SERVICE_ERROR, NATS_SERVICE_ERROR_CODE, ServiceExt, endpoint::Endpoint,
};
use bytes::Bytes;
use futures_util::StreamExt;

use super::{JetStream, unavailable};
use crate::broker::Error;
use crate::subject;

/// Bytes of a sentence in a header.
const SENTENCE: usize = 1024;

/// What a service is.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// Its version, `1.2.3`.
    pub version: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Where it is asked; may have wildcards.
    pub subject: &'static str,
}

/// A service that is offered, among any number of processes that offer the same: each request
/// comes to one of them.
pub struct Service {
    service: service::Service,
    requests: Endpoint,
}

/// Somebody waits for an answer.
pub struct Request(service::Request);

impl JetStream {
    /// Offers a service from now on.
    pub async fn offer(&self, offer: &Offer) -> Result<Service, Error> {
        let Offer { name, version, description, subject } = offer;
        let builder = self.client.service_builder().description(description).queue_group(name);
        let service = builder.start(name, version).await.map_err(unavailable)?;
        let requests = service.endpoint_builder().name(name).add(subject);
        let requests = requests.await.map_err(unavailable)?;
        // What is asked from now on must come here.
        self.flush().await?;
        Ok(Service { service, requests })
    }
}

impl Service {
    /// The next request; `None` when it is closed and all that had come was given out.
    pub async fn next(&mut self) -> Option<Request> {
        loop {
            let request = self.requests.next().await?;
            match request.message.reply.as_deref() {
                // We may publish everywhere, and who asks may not: an answer is no way to have us
                // say something in another's name.
                Some(reply) if !subject::is_reserved(reply) => return Some(Request(request)),
                reply => {
                    let asked = request.message.subject.as_str();
                    tracing::warn!(subject = asked, reply, "a request that is not answered");
                }
            }
        }
    }

    /// Takes no further requests; those that have come are still given out.
    pub async fn close(&mut self) {
        // A connection that is gone brings no requests either.
        let _ = self.requests.stop().await;
    }

    /// Leaves the list of services.
    pub async fn stop(self) {
        let _ = self.service.stop().await;
    }
}

impl Request {
    /// Where it was asked.
    pub fn subject(&self) -> &str {
        &self.0.message.subject
    }

    /// What is asked.
    pub fn payload(&self) -> &[u8] {
        &self.0.message.payload
    }

    /// The values of a header, however its name is written.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let headers = self.0.message.headers.iter().flat_map(HeaderMap::iter);
        let named = headers.filter(|(given, _)| given.to_string().eq_ignore_ascii_case(name));
        named.flat_map(|(_, values)| values.iter().map(|value| value.as_str())).collect()
    }

    /// Answers it.
    pub async fn answer(self, answer: Bytes) -> Result<(), Error> {
        self.0.respond(Ok(answer)).await.map_err(unavailable)
    }

    /// Refuses it, in the headers of services and in a payload.
    pub async fn refuse(self, code: u16, sentence: &str, answer: Bytes) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_SERVICE_ERROR_CODE, code.to_string());
        headers.insert(NATS_SERVICE_ERROR, one_line(sentence));
        self.0.respond_with_headers(Ok(answer), headers).await.map_err(unavailable)
    }
}

/// A header ends with its line.
fn one_line(sentence: &str) -> String {
    let line = sentence.replace(char::is_control, " ");
    crate::outcome::bounded_to(SENTENCE, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_fits_a_header() {
        assert_eq!(one_line("a\r\nb\0c"), "a  b c");
        let long = one_line(&"ü".repeat(SENTENCE));
        assert!(long.len() <= SENTENCE + '…'.len_utf8() && long.ends_with('…'), "{}", long.len());
    }
}
