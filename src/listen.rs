//! Accepts connections until told to stop; for the API and for the object store.

use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long to wait when the process has no file descriptor for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Gives each connection to `connection`. Told to stop, it accepts no more and waits for those
/// that there are; dropped, it breaks them off.
pub async fn accept<C>(
    listener: TcpListener,
    stop: CancellationToken,
    connection: impl Fn(TcpStream) -> C,
) where
    C: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, _)) => {
                let _ = socket.set_nodelay(true);
                connections.spawn(connection(socket));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
