package offline

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Severity in the plugin protocol.
const severityError = 1

// caller calls a method of the real provider with encoded messages.
type caller func(ctx context.Context, method string, request []byte) ([]byte, error)

// stubOptions configure a stubProvider.
type stubOptions struct {
	// Dir holds the socket.
	Dir string
	// Schemas is the provider's response with its schemas, Protocol its version of the plugin protocol.
	Schemas  []byte
	Protocol int
	// Call calls the real provider.
	Call caller
	// Prior is the prior state; nil if everything is new.
	Prior *priorState
}

// stubProvider serves an engine in place of a real provider. It is never configured and keeps no state, so any number
// of engines may share it, unless it has a prior state.
type stubProvider struct {
	schemas []byte
	// resources and sources are the schemas of resources and data sources, by type.
	resources, sources map[string]block
	// legacy means protocol 5.
	legacy bool
	call   caller
	prior  *priorState

	server  *grpc.Server
	address net.Addr
}

// newStub serves a stub provider on a socket.
func newStub(o stubOptions, more ...grpc.ServerOption) (*stubProvider, error) {
	resources, err := schemasIn(o.Schemas, fieldResourceSchemas)
	if err != nil {
		return nil, err
	}
	sources, err := schemasIn(o.Schemas, fieldDataSourceSchemas)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(o.Dir, "socket"))
	if err != nil {
		return nil, fmt.Errorf("serving a stub provider: %w", err)
	}
	p := &stubProvider{schemas: o.Schemas, resources: resources, sources: sources, legacy: o.Protocol == 5,
		call: o.Call, prior: o.Prior, address: listener.Addr()}
	p.server = grpc.NewServer(append(more, grpc.ForceServerCodecV2(newFrames()), grpc.UnknownServiceHandler(p.serve),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
	alive := health.NewServer()
	alive.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(p.server, alive)
	go func() { _ = p.server.Serve(listener) }() // ends when stopped
	return p, nil
}

// Reattach returns the configuration that connects an engine to the stub.
func (p *stubProvider) Reattach(protocol int) tfexec.ReattachConfig {
	return tfexec.ReattachConfig{
		Protocol: "grpc", ProtocolVersion: protocol, Pid: os.Getpid(), Test: true,
		Addr: tfexec.ReattachConfigAddr{Network: p.address.Network(), String: p.address.String()},
	}
}

func (p *stubProvider) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	response, err := p.respond(stream.Context(), method, request)
	if err != nil {
		return err
	}
	sent := frame(response)
	return stream.SendMsg(&sent)
}

func (p *stubProvider) respond(ctx context.Context, method string, request []byte) ([]byte, error) {
	switch path.Base(method) {
	case "GetSchema", "GetProviderSchema":
		return p.schemas, nil
	case "PrepareProviderConfig": // the response has the configuration in the same field as the request
		return request, nil
	case "ValidateProviderConfig", "Configure", "ConfigureProvider", "Stop", "StopProvider":
		return nil, nil
	case "PlanResourceChange":
		return p.plan(ctx, method, request)
	case "UpgradeResourceState":
		return p.prior.upgrade(ctx, method, request)
	case "ReadDataSource":
		return p.prior.read(request, p.sources)
	case "ValidateResourceTypeConfig", "ValidateResourceConfig", "ValidateDataSourceConfig",
		"ValidateDataResourceConfig",
		"GetFunctions", "CallFunction":
		return p.call(ctx, method, request)
	case "OpenEphemeralResource", "ReadResource", "ApplyResourceChange", "ImportResourceState":
		return nil, status.Errorf(codes.Unavailable, "%s needs the infrastructure, which an offline plan does without",
			path.Base(method))
	}
	return nil, status.Errorf(codes.Unimplemented, "%s is not implemented", method)
}

// planRequest has the needed fields of a PlanResourceChange.Request.
type planRequest struct {
	kind            string
	prior, proposed []byte
}

// resourceType returns the resource type in a request of any method for resources.
func resourceType(request []byte) (string, error) {
	read, err := readPlanRequest(request)
	return read.kind, err
}

func readPlanRequest(request []byte) (planRequest, error) {
	var read planRequest
	err := eachField(request, func(number protowire.Number, _ uint64, content []byte) (err error) {
		switch number {
		case 1:
			read.kind = string(content)
		case 2:
			read.prior, err = packedOf(content)
		case 3:
			read.proposed, err = packedOf(content)
		}
		return err
	})
	return read, err
}

// packedOf returns a DynamicValue's MessagePack encoding, or nil if it has none.
func packedOf(message []byte) (value []byte, err error) {
	err = eachField(message, func(number protowire.Number, _ uint64, content []byte) error {
		if number == 1 {
			value = content
		}
		return nil
	})
	return value, err
}

// plan answers PlanResourceChange.
func (p *stubProvider) plan(ctx context.Context, method string, request []byte) ([]byte, error) {
	read, err := readPlanRequest(request)
	if err != nil {
		return nil, fmt.Errorf("reading what to plan: %w", err)
	}
	schema, known := p.resources[read.kind]
	if !known || read.proposed == nil {
		return nil, fmt.Errorf("planning %q: its schema or its configuration is missing", read.kind)
	}
	proposed, err := schema.unmarshal(read.proposed)
	if err != nil {
		return nil, fmt.Errorf("planning %q: %w", read.kind, err)
	}
	prior := cty.NullVal(schema.Type())
	if p.prior != nil && read.prior != nil {
		if prior, err = schema.unmarshal(read.prior); err != nil {
			return nil, fmt.Errorf("planning %q: %w", read.kind, err)
		}
	}
	planned := proposed
	switch {
	case prior.IsNull():
		planned = schema.planNew(proposed, p.legacy)
	case proposed.IsNull(): // it is deleted
	default:
		if response, ok := p.prior.plan(ctx, method, request, read); ok {
			return response, nil
		}
		planned = schema.planChange(prior, proposed, p.prior.Configured(read.kind))
	}
	value, err := schema.marshal(planned)
	if err != nil {
		return nil, fmt.Errorf("planning %q: %w", read.kind, err)
	}
	response := appendField(nil, 1, appendField(nil, 1, value))
	if p.legacy {
		response = protowire.AppendVarint(protowire.AppendTag(response, 5, protowire.VarintType), 1)
	}
	return response, nil
}

// Address returns the listener's address.
func (p *stubProvider) Address() net.Addr { return p.address }

// Schemas returns the schemas of its resources, by type.
func (p *stubProvider) Schemas() map[string]block { return p.resources }

// Prior returns its prior state.
func (p *stubProvider) Prior() *priorState { return p.prior }

// Close stops serving.
func (p *stubProvider) Close() { p.server.Stop() }
