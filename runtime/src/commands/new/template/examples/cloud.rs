//! A cloud to try the CPI with. It keeps servers in memory and is reachable only
//! from this machine. `cargo run --example cloud` prints every request.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::{TcpListener, TcpStream};

fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let listener = TcpListener::bind(address)?;
    println!("listening at http://{}", listener.local_addr()?);
    let mut servers = BTreeMap::new();
    for stream in listener.incoming() {
        if let Err(error) = stream.and_then(|stream| serve(stream, &mut servers)) {
            println!("a request could not be read: {error}");
        }
    }
    Ok(())
}

fn serve(stream: TcpStream, servers: &mut BTreeMap<u32, Value>) -> Result<(), Error> {
    let mut reader = BufReader::new(&stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    println!("\n{}", request.trim_end());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => println!("{name}: {value}"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if !body.is_empty() {
        println!("{}", String::from_utf8_lossy(&body));
    }
    let mut parts = request.split_whitespace();
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (status, answer) = answer(method, path, &body, servers);
    let text = answer.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close");
    write!(&stream, "{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

fn answer(method: &str, path: &str, body: &[u8], servers: &mut BTreeMap<u32, Value>) -> (&'static str, Value) {
    let missing = ("404 Not Found", json!({"error": "the server does not exist"}));
    let server = path.strip_prefix("/servers/s-").map(|number| number.parse().unwrap_or(0));
    match (method, server) {
        ("POST", None) if path == "/servers" => {
            let Ok(wanted) = serde_json::from_slice::<Value>(body) else {
                return ("400 Bad Request", json!({"error": "the body is not JSON"}));
            };
            let number = servers.last_key_value().map_or(1, |(last, _)| last + 1);
            let server = json!({"id": format!("s-{number}"), "name": wanted["name"], "status": "running"});
            servers.insert(number, server.clone());
            ("201 Created", server)
        }
        ("GET", Some(number)) => servers.get(&number).map_or(missing, |server| ("200 OK", server.clone())),
        ("DELETE", Some(number)) => servers.remove(&number).map_or(missing, |server| ("200 OK", server)),
        _ => ("404 Not Found", json!({"error": "the path does not exist"})),
    }
}
