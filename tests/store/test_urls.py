"""What a URL may say beside an address: TLS, a Unix socket, a password with any characters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from traceback import format_exception
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from turnstore import AsyncStore, DeniedError, Store, UnavailableError
from turnstore.server import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import OwnServer
    from tests.servers.setups import Setup

pytestmark = [pytest.mark.servers("redis", "valkey"), pytest.mark.usefixtures("server")]

PASSWORD = "p@ss/w:rd"  # noqa: S105 - of a server that lives as long as the test
ESCAPED = "p%40ss%2Fw%3Ard"


async def _works(url: str, setup: Setup) -> None:
    if setup.client == "sync":
        with Store.from_url(url, name="t") as store:
            store.conversation("ada").append("hi")
            assert [message["content"] for message in store.conversation("ada").read()] == ["hi"]
        return
    async with AsyncStore.from_url(url, name="t") as store:
        await store.conversation("ada").append("hi")
        assert [message["content"] for message in await store.conversation("ada").read()] == ["hi"]


async def _says(url: str, setup: Setup) -> str:
    """Give what the error says of a URL that makes no connection, and so sends nothing."""
    with pytest.raises(UnavailableError, match="nothing was sent") as caught:
        await _works(url, setup)
    assert not caught.value.outcome_unknown
    return str(caught.value)


@pytest.mark.parametrize("options", ["", "?protocol=3&decode_responses=true"])
async def test_a_unix_socket(
    setup: Setup, own_server: OwnServer, tmp_path: Path, options: str
) -> None:
    path = tmp_path / "s"
    own_server(config={"unixsocket": str(path)})
    await _works(f"unix://{path}{options}", setup)


async def test_a_password_of_any_characters(setup: Setup, own_server: OwnServer) -> None:
    mine = own_server(config={"requirepass": PASSWORD})
    await _works(f"redis://:{ESCAPED}@127.0.0.1:{mine.port}", setup)


async def test_a_wrong_password_is_denied(setup: Setup, own_server: OwnServer) -> None:
    mine = own_server(config={"requirepass": PASSWORD})
    with pytest.raises(DeniedError):
        await _works(f"redis://:wrong@127.0.0.1:{mine.port}", setup)


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, SHA256())
    )
    certificate, private = folder / "c.pem", folder / "k.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    return certificate, private


@pytest.mark.servers("redis-7")  # those in the wheels know no TLS
async def test_tls_with_a_certificate_that_is_trusted_alone(
    setup: Setup, own_server: OwnServer, tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path)
    port = free_port()
    config = {"tls-port": str(port), "tls-cert-file": str(certificate), "tls-key-file": str(key)}
    own_server(config={**config, "tls-ca-cert-file": str(certificate), "tls-auth-clients": "no"})
    url = f"rediss://127.0.0.1:{port}"
    await _works(f"{url}?ssl_ca_certs={certificate}", setup)
    said = await _says(url, setup)
    assert "the server's certificate was not accepted; nothing was sent. Name who vouches" in said
    assert "CERTIFICATE_VERIFY_FAILED" in said
    said = await _says(f"redis://127.0.0.1:{port}", setup)
    assert "check that the URL and the port agree about TLS" in said


@pytest.mark.servers("redis-7")
async def test_tls_where_the_server_wants_a_certificate_too(
    setup: Setup, own_server: OwnServer, tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path)
    port = free_port()
    config = {"tls-port": str(port), "tls-cert-file": str(certificate), "tls-key-file": str(key)}
    own_server(config={**config, "tls-ca-cert-file": str(certificate)})
    url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}"
    await _works(f"{url}&ssl_certfile={certificate}&ssl_keyfile={key}", setup)
    # With TLS 1.3 the refusal comes after the handshake, and the end of the connection with it.
    said = await _says(url, setup)
    assert "the TLS handshake failed; nothing" in said or "no connection that can be used" in said


@pytest.mark.parametrize("url", ["redis://:s3cr3t/xyz@host", "redis://u:p@s3cr3t:w/rd@host:6379"])
def test_an_error_about_a_url_tells_nothing_of_its_password(url: str) -> None:
    for kind in (Store, AsyncStore):
        with pytest.raises(ValueError, match="/ as %2F") as caught:
            kind.from_url(url, name="test")
        told = "".join(format_exception(caught.value))
        assert "s3cr3t" not in told
        assert "'w'" not in told
