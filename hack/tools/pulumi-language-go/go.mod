// What runs Go programs that are built already, in a module of its own. Nothing here reaches the product's go.mod.
module github.com/machine-iac/machine-iac-operator/hack/tools/pulumi-language-go

go 1.26.0

require (
	github.com/pulumi/pulumi/sdk/v3 v3.255.0
	google.golang.org/grpc v1.82.1
	google.golang.org/protobuf v1.36.11
)

require (
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
)
