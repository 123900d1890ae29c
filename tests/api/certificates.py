"""Certificates for tests, made by the program openssl: a CA of its own, and whatever it signs."""
import datetime
import os
import pathlib
import ssl
import subprocess

CONFIG = """
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = none
[any]
commonName = supplied
"""


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def stamp(days):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return moment.strftime("%Y%m%d%H%M%SZ")


def make_key(path):
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)


class Authority:
    """A CA in a folder of its own. cert(), key() and the paths they return stay there."""

    def __init__(self, folder, name="ca"):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.config = os.path.join(self.folder, "config")
        pathlib.Path(self.config).write_text(CONFIG.format(folder=self.folder))
        pathlib.Path(self.folder, "index").touch()
        self.pem, self.key = os.path.join(self.folder, "ca.pem"), os.path.join(self.folder,
                                                                               "ca.key")
        make_key(self.key)
        openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}", "-days", "3650",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", self.pem)

    def sign(self, name, sans="DNS:localhost,IP:127.0.0.1", since=-1, until=365):
        """A certificate and its key, valid from and until so many days from now."""
        base = os.path.join(self.folder, name)
        pathlib.Path(base + ".ext").write_text(f"subjectAltName={sans}\n" if sans else "")
        make_key(base + ".key")
        os.chmod(base + ".key", 0o600)
        openssl("req", "-new", "-key", base + ".key", "-subj", f"/CN={name}", "-out", base + ".csr")
        openssl("ca", "-batch", "-notext", "-config", self.config, "-cert", self.pem, "-keyfile",
                self.key, "-in", base + ".csr", "-out", base + ".pem", "-startdate", stamp(since),
                "-enddate", stamp(until), "-extfile", base + ".ext")
        return base + ".pem", base + ".key"


def client_context(ca, certificate=None):
    """Of a client that trusts this CA; certificate: a pair that sign() returned."""
    context = ssl.create_default_context(cafile=ca)
    if certificate:
        context.load_cert_chain(*certificate)
    return context
