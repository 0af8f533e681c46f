"""A control plane of the etcd, kube-apiserver and kubectl in the directory that KUBEBUILDER_ASSETS names.

There is no kube-controller-manager among them: nothing is garbage collected, and no namespace ever goes.
"""

import json
import random
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from tests.cluster.plane import Cluster, KubectlError, Server, directory, serving

TRIES = 450  # to find the server ready, at least a fifth of a second apart


@contextmanager
def running(programs: Path) -> Iterator[Cluster]:
    """Run what is in `programs`. Raises RuntimeError with what the server logged if it does not start."""
    with directory() as place:
        client, peer, port = free_ports(3)
        etcd = f"http://127.0.0.1:{client}"
        cluster = written(place, programs, f"https://127.0.0.1:{port}")
        with (
            serving(*etcd_command(programs, place, etcd, f"http://127.0.0.1:{peer}")) as store,
            serving(programs / "kube-apiserver", *server_flags(place, etcd, port)) as server,
        ):
            await_ready(cluster, server, store)
            yield cluster


def etcd_command(programs: Path, place: Path, client: str, peer: str) -> list[str | Path]:
    """The command of an etcd that serves at the URL `client`."""
    clients = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
    peers = [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
    options = [f"--initial-cluster=default={peer}", "--unsafe-no-fsync", "--log-level=error"]
    return [programs / "etcd", f"--data-dir={place / 'etcd'}", *clients, *peers, *options]


def server_flags(place: Path, etcd: str, port: int) -> list[str]:
    """The flags of kube-apiserver: those that tests/controlplane/serve.go gives it, for the reasons said there."""
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--cert-dir={place}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={place / 'sa.key'}",
        f"--service-account-key-file={place / 'sa.key'}",
        f"--token-auth-file={place / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--enable-priority-and-fairness=false",
        "--profiling=false",
    ]


def written(place: Path, programs: Path, server: str) -> Cluster:
    """Write what must be there before the server starts."""
    token, ca, kubeconfig = secrets.token_hex(), place / "apiserver.crt", place / "kubeconfig"
    asyncssh.generate_private_key("ecdsa-sha2-nistp256").write_private_key(place / "sa.key", "pkcs1-pem")
    (place / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin", "namespace": "default"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    return Cluster(server, ca, kubeconfig, programs)


def await_ready(cluster: Cluster, *servers: Server) -> None:
    """Wait until the server says that it is ready."""
    for _ in range(TRIES):
        try:
            cluster.kubectl("get", "--raw", "/readyz")
        except KubectlError:
            for server in servers:
                if server.ended(within=0.1):
                    raise RuntimeError(f"the control plane did not start: {server.log()}") from None
        else:
            return
    raise RuntimeError(f"the control plane was not ready in time: {servers[0].log()}")


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at, below those that the system gives to outgoing connections."""
    ports = list[int]()
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free port between 20000 and 32000")
