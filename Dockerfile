# The manager with its engines and the providers of its modules and stacks. Everything is built from pinned Go modules.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=development
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/machine-controllers ./cmd/machine-controllers
RUN BIN_DIR=/out/bin hack/tools.sh tofu provider-kubectl provider-vsphere provider-libvirt provider-openstack provider-nutanix \
  pulumi pulumi-language-yaml pulumi-language-go pulumi-terraform-provider
RUN mkdir -p /out/work

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/machine-controllers /usr/bin/machine-controllers
COPY --from=build /out/bin/tofu /usr/bin/tofu
# Pulumi starts the hosts of its programs' languages from PATH, which in a run is the folder that it lies in itself.
COPY --from=build /out/bin/pulumi /out/bin/pulumi-language-yaml /out/bin/pulumi-language-go /usr/bin/
# The providers of both engines: Pulumi's bridge, one of its plugins, takes those of the mirror.
COPY --from=build /out/bin/mirror /usr/share/machine-iac/mirror
COPY --from=build /out/bin/pulumi-plugins /usr/share/machine-iac/pulumi-plugins
COPY --from=build --chown=65532:65532 /out/work /var/lib/machine-iac
USER 65532:65532
ENTRYPOINT ["/usr/bin/machine-controllers"]
