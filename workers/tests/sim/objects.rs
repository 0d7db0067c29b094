//! The object store: what stands behind a real S3 client, in this process. It keeps what it is
//! given, with its checksum, and knows the four requests that the chain makes for objects of our
//! size; any other would be seen.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::endpoint::{Endpoint, EndpointFuture, Params, ResolveEndpoint};
use aws_sdk_s3::config::http::{HttpRequest, HttpResponse};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Config, HttpClient, Region, RequestChecksumCalculation,
    ResponseChecksumValidation, RuntimeComponents, StalledStreamProtectionConfig,
};
use aws_sdk_s3::error::ConnectorError;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use streams::snapshot::ObjectRef;

use crate::calls::Op;
use crate::process::Process;

/// What a store keeps of an object.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) bytes: Bytes,
    crc32: String,
}

/// All objects, by key.
#[derive(Debug, Default)]
pub(crate) struct Objects(Mutex<BTreeMap<String, Kept>>);

impl Objects {
    pub(crate) fn get(&self, key: &str) -> Option<Kept> {
        self.0.lock().expect("no poison").get(key).cloned()
    }

    /// Loses the last object whose key names this.
    pub(crate) fn remove_one_of(&self, name: &str) {
        let mut objects = self.0.lock().expect("no poison");
        let key = objects.keys().rfind(|key| key.contains(name)).cloned();
        key.and_then(|key| objects.remove(&key)).expect("there is one");
    }

    /// What speaks against an object being there as it is listed.
    pub(crate) fn objection(&self, object: &ObjectRef) -> Option<String> {
        let Some(kept) = self.get(&object.key) else { return Some("it is not there".to_owned()) };
        let size = kept.bytes.len() as u64;
        if size != object.size {
            return Some(format!("it has {size} bytes, {} are listed", object.size));
        }
        let sha256 = hex::encode(Sha256::digest(&kept.bytes));
        (sha256 != object.sha256).then(|| format!("its digest is {sha256}"))
    }

    fn put(&self, key: String, kept: Kept) {
        self.0.lock().expect("no poison").insert(key, kept);
    }
}

/// A client of the SDK's whose requests come to the world.
pub(crate) fn client(process: Arc<Process>) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("here"))
        .endpoint_resolver(Here)
        .allow_no_auth()
        // What fails here is tried again by whoever asked, as the plan has it.
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
        .http_client(Wire(process))
        .build();
    Client::from_conf(config)
}

/// There is one store, and nobody asks who one is: resolving and signing would be most of the work.
#[derive(Debug)]
struct Here;

impl ResolveEndpoint for Here {
    fn resolve_endpoint<'a>(&'a self, _: &'a Params) -> EndpointFuture<'a> {
        EndpointFuture::ready(Ok(Endpoint::builder().url("http://objects").build()))
    }
}

/// The way from one process to the store.
#[derive(Clone)]
struct Wire(Arc<Process>);

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let process = Arc::clone(&self.0);
        HttpConnectorFuture::new(async move {
            let op = match request.method() {
                "PUT" => Op::Put,
                "HEAD" => Op::Head,
                "GET" => Op::Read,
                other => panic!("the store knows no {other} {}", request.uri()),
            };
            let key = key(&request);
            let job = process.world.job_in(&key);
            let objects = &process.world.objects;
            let answer = async { answered(objects, op, key, &request) };
            match process.call(op, job, answer).await {
                Ok(answer) => Ok(answer),
                // Half of the failures are a store's own words, half are none.
                Err(broken) if broken.nth % 2 == 0 => Ok(refusal(503, "SlowDown")),
                Err(broken) => Err(ConnectorError::io(broken.into())),
            }
        })
    }
}

/// `http://objects/<key>?…`
fn key(request: &HttpRequest) -> String {
    let path = request.uri().split('?').next().unwrap_or_default();
    path.splitn(4, '/').nth(3).unwrap_or_default().to_owned()
}

fn answered(objects: &Objects, op: Op, key: String, request: &HttpRequest) -> HttpResponse {
    if op == Op::Put {
        let bytes = request.body().bytes().expect("a body that is sent is at hand");
        let crc32 = request.headers().get("x-amz-checksum-crc32").unwrap_or_default().to_owned();
        objects.put(key, Kept { bytes: Bytes::copy_from_slice(bytes), crc32 });
        return response(200, SdkBody::empty());
    }
    let Some(kept) = objects.get(&key) else { return refusal(404, "NoSuchKey") };
    assert!(request.headers().get("range").is_none(), "nobody asks for parts of small objects");
    let length = kept.bytes.len().to_string();
    let body = if op == Op::Head { SdkBody::empty() } else { SdkBody::from(kept.bytes.to_vec()) };
    let mut answer = response(200, body);
    answer.headers_mut().insert("content-length", length);
    if !kept.crc32.is_empty() {
        answer.headers_mut().insert("x-amz-checksum-crc32", kept.crc32);
    }
    answer
}

fn refusal(status: u16, code: &str) -> HttpResponse {
    response(status, SdkBody::from(format!("<Error><Code>{code}</Code></Error>")))
}

fn response(status: u16, body: SdkBody) -> HttpResponse {
    HttpResponse::new(status.try_into().expect("a status"), body)
}
