package offline

import (
	"context"
	"fmt"
	"net"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

const unknownVersion = "1.0.0"

// unknownSchema describes a package with one resource, whose value is unknown before it is created.
const unknownSchema = `{"name":"` + unknownResource + `","version":"` + unknownVersion + `","resources":{"` +
	unknownType +
	`":{"properties":{"value":{"$ref":"pulumi.json#/Any"}},"required":["value"]}}}`

// unknownProvider serves that package to any number of previews.
type unknownProvider struct {
	pulumirpc.UnimplementedResourceProviderServer
	server *grpc.Server
	port   int
}

// serveUnknown listens on the loopback interface, the only way for Pulumi to reach a provider. It has no data, so it
// needs no authentication.
func serveUnknown() (*unknownProvider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving unknown values: %w", err)
	}
	p := &unknownProvider{server: grpc.NewServer()}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		p.port = address.Port
	}
	pulumirpc.RegisterResourceProviderServer(p.server, p)
	go func() { _ = p.server.Serve(listener) }() // ends when stopped
	return p, nil
}

func (p *unknownProvider) close() { p.server.Stop() }

// Handshake implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) Handshake(context.Context,
	*pulumirpc.ProviderHandshakeRequest) (*pulumirpc.ProviderHandshakeResponse, error) {
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true, AcceptOutputs: true}, nil
}

// Attach implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) Attach(context.Context, *pulumirpc.PluginAttach) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// GetPluginInfo implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: unknownVersion}, nil
}

// GetSchema implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) GetSchema(context.Context, *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: unknownSchema}, nil
}

// CheckConfig implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) CheckConfig(_ context.Context,
	request *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: request.GetNews()}, nil
}

// Configure implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true, AcceptResources: true,
		AcceptOutputs: true}, nil
}

// Check implements pulumirpc.ResourceProviderServer.
func (*unknownProvider) Check(_ context.Context, request *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: request.GetNews()}, nil
}

// Create implements pulumirpc.ResourceProviderServer. Only previews call it.
func (*unknownProvider) Create(context.Context, *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	return &pulumirpc.CreateResponse{Properties: &structpb.Struct{Fields: map[string]*structpb.Value{
		"value": structpb.NewStringValue(pulumi.UnknownValue),
	}}}, nil
}
