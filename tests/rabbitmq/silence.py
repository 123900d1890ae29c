"""A TCP proxy that forwards, and can fall silent: the connections stay, and nothing comes through any
more."""
import socket
import threading


class Silence:
    def __init__(self, port):
        self.target = port
        self.speaks = threading.Event()
        self.speaks.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self.ends += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self.forward, args=ends, daemon=True).start()

    def forward(self, source, sink):
        try:
            while data := source.recv(65536):
                self.speaks.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def fall_silent(self):
        self.speaks.clear()

    def speak(self):
        self.speaks.set()

    def close(self):
        self.speaks.set()
        for sock in [self.listener, *self.ends]:
            sock.close()
