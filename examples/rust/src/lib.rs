//! A NIC for each test, without a library of rocemu: the command `rocemu run` and its control socket,
//! which docs/control.md describes. Copy this file into your project; a larger suite would read the
//! replies with serde_json.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A NIC that lives as long as this value, or at the most as long as this process.
pub struct Fabric {
    keeper: Child,
    directory: String,
    preload: String,
    control: BufReader<UnixStream>,
}

impl Fabric {
    /// Starts a NIC with these options of `rocemu run`, such as `["--profile", "irdma-e810"]`.
    pub fn start(options: &[&str]) -> io::Result<Fabric> {
        let rocemu = env::var("ROCEMU_COMMAND").unwrap_or_else(|_| "rocemu".to_string());
        // The NIC lives until this command ends, and cat ends when the pipe to it is closed, which
        // the end of this process does, too.
        let mut keeper = Command::new(rocemu)
            .args(["run", "--private"])
            .args(options)
            .args([
                "--",
                "sh",
                "-c",
                r#"echo "$ROCEMU_DIR"; echo "$LD_PRELOAD"; exec cat"#,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(keeper.stdout.take().expect("stdout is a pipe")).lines();
        let mut next = || lines.next().unwrap_or_else(|| Ok(String::new()));
        let (directory, preload) = (next()?, next()?);
        if preload.is_empty() {
            keeper.wait()?;
            return Err(Error::new(
                ErrorKind::Other,
                "rocemu has not started a NIC; its message is above",
            ));
        }
        let control = BufReader::new(UnixStream::connect(Path::new(&directory).join("control"))?);
        Ok(Fabric {
            keeper,
            directory,
            preload,
            control,
        })
    }

    /// A command that sees the NIC's devices.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("ROCEMU_DIR", &self.directory)
            .env("LD_PRELOAD", &self.preload);
        command
    }

    /// Starts a command; it ends with the returned value at the latest.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Program> {
        command.spawn().map(Program)
    }

    /// Sends a request of docs/control.md, one JSON object. Returns the reply if it is `"ok": true`.
    pub fn request(&mut self, json: &str) -> io::Result<String> {
        writeln!(self.control.get_mut(), "{json}")?;
        let mut reply = String::new();
        self.control.read_line(&mut reply)?;
        if reply.contains(r#""ok":true"#) {
            Ok(reply)
        } else {
            Err(Error::new(
                ErrorKind::Other,
                format!("the NIC refuses {json}: {reply}"),
            ))
        }
    }

    /// Adds a rule in YAML, on one line, such as `{on: frame, opcode: ACK, do: drop}`.
    pub fn add_rule(&mut self, rule: &str) -> io::Result<()> {
        let escaped = rule.replace('\\', r"\\").replace('"', "\\\"");
        self.request(&format!(r#"{{"command":"inject","rule":"{escaped}"}}"#))
            .map(drop)
    }

    /// Waits until a program listens on the port, with rdma_listen(3) or with TCP.
    pub fn wait_listening(&mut self, port: u16, timeout: Duration) -> io::Result<()> {
        let deadline = Instant::now() + timeout;
        let request = format!(r#"{{"command":"listening","port":{port}}}"#);
        while !self.request(&request)?.contains(r#""listening":true"#) {
            if Instant::now() > deadline {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    format!("no program listens on port {port}"),
                ));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A program that is killed when the value goes.
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A TCP port that no program uses.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("0.0.0.0", 0))?.local_addr()?.port())
}
