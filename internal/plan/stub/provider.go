package stub

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

// Severities of the plugin protocol.
const severityError = 1

// Caller calls a method of a provider itself, with messages as they are on the wire.
type Caller func(ctx context.Context, method string, request []byte) ([]byte, error)

// Options describe a [Provider].
type Options struct {
	// Dir gets the socket.
	Dir string
	// Schemas is the provider's response with its schemas, and Protocol the version of the plugin protocol that it speaks.
	Schemas  []byte
	Protocol int
	// Call calls the provider itself.
	Call Caller
	// Prior is the prior state; nil where everything is new.
	Prior *PriorState
}

// Provider is a stub provider: it serves an engine in place of one provider. It is never configured and has no state of its own, so any
// number of engines may use it at once, unless it has a prior state.
type Provider struct {
	schemas []byte
	// resources and sources are the schemas of resources and data sources, by type.
	resources, sources map[string]Block
	// legacy reports that it speaks protocol 5.
	legacy bool
	call   Caller
	prior  *PriorState

	server  *grpc.Server
	address net.Addr
}

// New serves a stub provider on a socket.
func New(o Options, more ...grpc.ServerOption) (*Provider, error) {
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
	p := &Provider{schemas: o.Schemas, resources: resources, sources: sources, legacy: o.Protocol == 5, call: o.Call, prior: o.Prior, address: listener.Addr()}
	p.server = grpc.NewServer(append(more, grpc.ForceServerCodecV2(newFrames()), grpc.UnknownServiceHandler(p.serve),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
	alive := health.NewServer()
	alive.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(p.server, alive)
	go func() { _ = p.server.Serve(listener) }() // it ends when it is stopped
	return p, nil
}

// Reattach returns what an engine needs to use it.
func (p *Provider) Reattach(protocol int) tfexec.ReattachConfig {
	return tfexec.ReattachConfig{
		Protocol: "grpc", ProtocolVersion: protocol, Pid: os.Getpid(), Test: true,
		Addr: tfexec.ReattachConfigAddr{Network: p.address.Network(), String: p.address.String()},
	}
}

// serve serves one call.
func (p *Provider) serve(_ any, stream grpc.ServerStream) error {
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

func (p *Provider) respond(ctx context.Context, method string, request []byte) ([]byte, error) {
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
	case "ValidateResourceTypeConfig", "ValidateResourceConfig", "ValidateDataSourceConfig", "ValidateDataResourceConfig",
		"GetFunctions", "CallFunction":
		return p.call(ctx, method, request)
	case "OpenEphemeralResource", "ReadResource", "ApplyResourceChange", "ImportResourceState":
		return nil, status.Errorf(codes.Unavailable, "%s needs the infrastructure, which an offline plan does without", path.Base(method))
	}
	return nil, status.Errorf(codes.Unimplemented, "%s is not implemented", method)
}

// planRequest is what is read of a PlanResourceChange.Request.
type planRequest struct {
	kind            string
	prior, proposed []byte
}

// ResourceType returns the type of the resource that a request of any method for resources is about.
func ResourceType(request []byte) (string, error) {
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

// packedOf returns the value of a DynamicValue that is written as MessagePack; nil where it is not.
func packedOf(message []byte) (value []byte, err error) {
	err = eachField(message, func(number protowire.Number, _ uint64, content []byte) error {
		if number == 1 {
			value = content
		}
		return nil
	})
	return value, err
}

// plan returns the response to PlanResourceChange.
func (p *Provider) plan(ctx context.Context, method string, request []byte) ([]byte, error) {
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

// Address returns where it listens.
func (p *Provider) Address() net.Addr { return p.address }

// Schemas returns the schemas of its resources, by type.
func (p *Provider) Schemas() map[string]Block { return p.resources }

// Prior returns its prior state.
func (p *Provider) Prior() *PriorState { return p.prior }

// Close stops serving.
func (p *Provider) Close() { p.server.Stop() }
