# The manager with its engine and the providers of its modules. Everything is built from pinned Go modules.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=development
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/machine-controllers ./cmd/machine-controllers
RUN BIN_DIR=/out/bin hack/tools.sh tofu provider-kubectl provider-vsphere provider-libvirt provider-openstack
RUN mkdir -p /out/work

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/machine-controllers /usr/bin/machine-controllers
COPY --from=build /out/bin/tofu /usr/bin/tofu
COPY --from=build /out/bin/mirror /usr/share/machine-iac/mirror
COPY --from=build --chown=65532:65532 /out/work /var/lib/machine-iac
USER 65532:65532
ENTRYPOINT ["/usr/bin/machine-controllers"]
