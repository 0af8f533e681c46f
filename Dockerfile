# The operator's image: docker build -t vastfleet:0.1.0 .
#
# All that is installed is locked with hashes. 3.12: later Pythons refuse the certificates of some clusters' API servers,
# whose authority lacks a key identifier.

FROM python:3.12-slim AS build
WORKDIR /src
COPY .ci/demo.lock .ci/demo.lock
RUN python -m venv --without-pip /opt/vastfleet \
    && pip --python /opt/vastfleet/bin/python install --no-cache-dir --require-hashes --requirement .ci/demo.lock
COPY pyproject.toml README.md LICENSE ./
COPY controller controller
COPY examples/fleet.yaml examples/fleet.yaml
RUN pip --python /opt/vastfleet/bin/python install --no-cache-dir --no-deps --no-build-isolation . \
    && pip --python /opt/vastfleet/bin/python uninstall --yes editables hatchling packaging pathspec pluggy trove-classifiers

FROM python:3.12-slim
COPY --from=build /opt/vastfleet /opt/vastfleet
ENV PATH=/opt/vastfleet/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["vastfleet", "operator"]
