"""A RabbitMQ of our own for tests: in a temporary folder, on loopback and free ports, with a node
name, a cookie and an epmd of its own, and gone at the end. Nothing of a broker that the system may
have is touched. It takes seconds to start, so a file of tests starts one for all of its classes:

    def setUpModule():
        global BROKER
        BROKER = rabbit.begin_module()
"""
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

import pika

import certificates
from harness import free_port, wait_until

PROGRAMS = "/usr/lib/rabbitmq/bin"
START_SECONDS_MAX = 120


def begin_module(**options):
    broker = Rabbit(**options)
    unittest.addModuleCleanup(broker.end)
    broker.begin()
    return broker


class Rabbit:
    def __init__(self, tls=False):
        self.folder = tempfile.mkdtemp(prefix="perdura-rabbit-")
        self.port, self.tls_port = free_port(), free_port() if tls else 0
        # TLS also under 127.0.0.2, which the certificate does not name
        self.epmd_port, self.dist_port = free_port(), free_port()
        self.name = f"perdura-{os.getpid()}-{self.port}@localhost"
        self.authority = certificates.Authority(self.folder) if tls else None
        self.epmd = self.process = None
        self.connections = []
        self.write_configuration()

    def write_configuration(self):
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "loopback_users = none",
                 "vm_memory_high_watermark.absolute = 2GB", "disk_free_limit.absolute = 1MB",
                 "log.file.level = warning"]
        if self.authority:
            signed = self.authority.sign("broker")
            lines += [f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}",
                      f"listeners.ssl.2 = 127.0.0.2:{self.tls_port}",
                      f"ssl_options.cacertfile = {self.authority.pem}",
                      f"ssl_options.certfile = {signed[0]}", f"ssl_options.keyfile = {signed[1]}"]
        with open(f"{self.folder}/rabbitmq.conf", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with open(f"{self.folder}/enabled_plugins", "w", encoding="utf-8") as file:
            file.write("[].\n")
        with open(f"{self.folder}/.erlang.cookie", "w", encoding="utf-8") as file:
            file.write(os.urandom(20).hex())
        os.chmod(f"{self.folder}/.erlang.cookie", 0o400)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": self.folder, "LC_ALL": "C.UTF-8",
            "RABBITMQ_NODENAME": self.name, "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": f"{self.folder}/data", "RABBITMQ_LOG_BASE": f"{self.folder}/log",
            "RABBITMQ_CONFIG_FILE": f"{self.folder}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{self.folder}/none.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.folder}/enabled_plugins",
            "RABBITMQ_PID_FILE": f"{self.folder}/pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu none",
            "ERL_EPMD_PORT": str(self.epmd_port), "ERL_EPMD_ADDRESS": "127.0.0.1"}

    # ---- the process ----

    def begin(self):
        self.epmd = subprocess.Popen(["epmd", "-port", str(self.epmd_port), "-address",
                                      "127.0.0.1"], env=self.environment,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.listens(self.epmd_port), what="epmd")
        self.start()

    def start(self):
        with open(f"{self.folder}/output", "ab") as output:
            self.process = subprocess.Popen([f"{PROGRAMS}/rabbitmq-server"], env=self.environment,
                                            cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, start_new_session=True)
        wait_until(self.answers, START_SECONDS_MAX, "the broker")

    @staticmethod
    def listens(port):
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    def answers(self):
        if self.process.poll() is not None:
            with open(f"{self.folder}/output", encoding="utf-8", errors="replace") as output:
                raise AssertionError("the broker did not start: " + output.read()[-2000:])
        try:
            self.connect().close()
            return True
        except (pika.exceptions.AMQPError, OSError):
            return False

    def kill(self):
        """As a crash would."""
        self.close_connections()
        os.killpg(self.process.pid, signal.SIGKILL)  # the runtime and its helpers: our own session
        self.process.wait()
        self.process = None

    def stop(self, seconds=30):
        """An orderly end, which tells clients."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
            self.process = None
        except subprocess.TimeoutExpired:
            self.kill()

    def end(self):
        try:
            if self.process:
                self.kill()
            if self.epmd:
                self.epmd.kill()
                self.epmd.wait()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, *arguments):
        return subprocess.run([f"{PROGRAMS}/rabbitmqctl", "-q", "-n", self.name, *arguments],
                              env=self.environment, check=True, capture_output=True, text=True,
                              timeout=120).stdout

    # ---- clients ----

    def url(self, login="guest:guest", port=None, vhost=""):
        return f"amqp://{login}@127.0.0.1:{port or self.port}{vhost}"

    def connect(self, port=None):
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", port or self.port, socket_timeout=20, blocked_connection_timeout=60,
            heartbeat=0))
        self.connections.append(connection)
        return connection

    def channel(self):
        channel = self.connect().channel()
        channel.confirm_delivery()
        return channel

    def close_connections(self):
        while self.connections:
            connection = self.connections.pop()
            try:
                if connection.is_open:
                    connection.close()
            except (pika.exceptions.AMQPError, OSError):
                pass

    def waiting(self, queue):
        """Messages that no consumer holds; -1 = there is no such queue."""
        connection = self.connect()
        try:
            return connection.channel().queue_declare(queue, passive=True).method.message_count
        except pika.exceptions.ChannelClosedByBroker:
            return -1
        finally:
            connection.close()

    def take_all(self, queue):
        """[(properties, body)] of what is in the queue, which is empty afterwards."""
        connection = self.connect()
        channel, taken = connection.channel(), []
        while True:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            if method is None:
                connection.close()
                return taken
            taken.append((properties, body))
