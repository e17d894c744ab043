# The image for those who have docker or another builder with BuildKit; `make image` builds the same without one. hack/image makes the files of
# both, in a folder for each layer.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=development
ARG TARGETARCH
ARG SOURCE_DATE_EPOCH=0
RUN go run ./hack/image stage -version "${VERSION}" -platform "linux/${TARGETARCH:-$(go env GOARCH)}" /layers

FROM scratch
ARG VERSION=development
LABEL org.opencontainers.image.title="machine-iac-operator" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.licenses="Apache-2.0" \
  io.openshift.release.operator="true"
COPY --from=build /layers/system /
COPY --from=build --chown=65532:65532 /layers/home/var/lib/machine-iac /var/lib/machine-iac
COPY --from=build /layers/engines /
COPY --from=build /layers/providers /
COPY --from=build /layers/programs /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/usr/bin/machine-controllers"]
