package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
)

// provider serves a schema. It implements what an engine calls to validate a module; it refuses to be configured, and with
// that whatever would follow. With a local API it is configured and reads, so that modules can be planned; it makes nothing then either.
type provider struct {
	name, version string
	schema        *providerSchema
	// api is read in place of the infrastructure; nil for nothing. Nothing is made there either.
	api *awsAPI
}

var _ tfprotov5.ProviderServer = provider{}

// refusal says why nothing is made.
func (p provider) refusal() []*tfprotov5.Diagnostic {
	return []*tfprotov5.Diagnostic{{
		Severity: tfprotov5.DiagnosticSeverityError,
		Summary:  fmt.Sprintf("This is only the recorded schema of %s %s", p.schema.Address, p.version),
		Detail: "The plugin serves a schema, for validation and for tests with a mocked provider; it can make nothing. " +
			"Run with a provider mirror that has the provider itself.",
	}}
}

// errRefused ends calls that no engine makes of a provider that refused to be configured.
var errRefused = errors.New("only a recorded schema is served here; run with the provider itself")

// GetMetadata names what there is.
func (p provider) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	response := &tfprotov5.GetMetadataResponse{}
	for _, name := range slices.Sorted(maps.Keys(p.schema.Resources)) {
		response.Resources = append(response.Resources, tfprotov5.ResourceMetadata{TypeName: name})
	}
	for _, name := range slices.Sorted(maps.Keys(p.schema.DataSources)) {
		response.DataSources = append(response.DataSources, tfprotov5.DataSourceMetadata{TypeName: name})
	}
	return response, nil
}

// GetProviderSchema returns the record.
func (p provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return &tfprotov5.GetProviderSchemaResponse{
		Provider: p.schema.Provider, ResourceSchemas: p.schema.Resources, DataSourceSchemas: p.schema.DataSources,
	}, nil
}

// GetResourceIdentitySchemas returns none: records have none.
func (provider) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

// PrepareProviderConfig takes every configuration of the right type, which the engine has seen to.
func (provider) PrepareProviderConfig(_ context.Context, request *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: request.Config}, nil
}

// ConfigureProvider refuses, unless there is a local API to read from.
func (p provider) ConfigureProvider(_ context.Context, request *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	if p.api != nil {
		return &tfprotov5.ConfigureProviderResponse{}, p.api.configure(p.schema.Provider, request.Config)
	}
	return &tfprotov5.ConfigureProviderResponse{Diagnostics: p.refusal()}, nil
}

// StopProvider has nothing to stop.
func (provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

// ValidateResourceTypeConfig finds nothing that the schema does not say.
func (provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

// ValidateDataSourceConfig finds nothing that the schema does not say.
func (provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

// UpgradeResourceState decodes a state of the recorded version.
func (p provider) UpgradeResourceState(_ context.Context, request *tfprotov5.UpgradeResourceStateRequest) (*tfprotov5.UpgradeResourceStateResponse, error) {
	schema := p.schema.Resources[request.TypeName]
	if schema == nil || request.Version > schema.Version {
		return &tfprotov5.UpgradeResourceStateResponse{Diagnostics: p.refusal()}, nil
	}
	kind := schema.ValueType()
	value, err := request.RawState.UnmarshalWithOpts(kind, tfprotov5.UnmarshalOpts{})
	if err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", request.TypeName, err)
	}
	upgraded, err := tfprotov5.NewDynamicValue(kind, value)
	if err != nil {
		return nil, fmt.Errorf("writing the state of %s: %w", request.TypeName, err)
	}
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: &upgraded}, nil
}

// ReadResource refuses, unless there is a local API to read from.
func (p provider) ReadResource(ctx context.Context, request *tfprotov5.ReadResourceRequest) (*tfprotov5.ReadResourceResponse, error) {
	if schema := p.schema.Resources[request.TypeName]; p.api != nil && schema != nil {
		current, err := decode(schema, request.CurrentState)
		if err != nil {
			return nil, err
		}
		state, _, err := p.readResource(ctx, request.TypeName, textOf(current["id"]))
		return &tfprotov5.ReadResourceResponse{NewState: state, Diagnostics: failure(err)}, nil
	}
	return &tfprotov5.ReadResourceResponse{Diagnostics: p.refusal()}, nil
}

// PlanResourceChange refuses, unless there is a local API to read from.
func (p provider) PlanResourceChange(_ context.Context, request *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	if p.api != nil {
		planned, err := p.plan(request)
		return &tfprotov5.PlanResourceChangeResponse{PlannedState: planned, Diagnostics: failure(err), UnsafeToUseLegacyTypeSystem: true}, nil
	}
	return &tfprotov5.PlanResourceChangeResponse{Diagnostics: p.refusal()}, nil
}

// ApplyResourceChange refuses.
func (p provider) ApplyResourceChange(context.Context, *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	return &tfprotov5.ApplyResourceChangeResponse{Diagnostics: p.refusal()}, nil
}

// ImportResourceState refuses, unless there is a local API to read from.
func (p provider) ImportResourceState(ctx context.Context, request *tfprotov5.ImportResourceStateRequest) (*tfprotov5.ImportResourceStateResponse, error) {
	if p.api != nil {
		state, found, err := p.readResource(ctx, request.TypeName, request.ID)
		response := &tfprotov5.ImportResourceStateResponse{Diagnostics: failure(err)}
		if found {
			response.ImportedResources = []*tfprotov5.ImportedResource{{TypeName: request.TypeName, State: state}}
		}
		return response, nil
	}
	return &tfprotov5.ImportResourceStateResponse{Diagnostics: p.refusal()}, nil
}

// MoveResourceState refuses.
func (p provider) MoveResourceState(context.Context, *tfprotov5.MoveResourceStateRequest) (*tfprotov5.MoveResourceStateResponse, error) {
	return &tfprotov5.MoveResourceStateResponse{Diagnostics: p.refusal()}, nil
}

// UpgradeResourceIdentity refuses.
func (p provider) UpgradeResourceIdentity(context.Context, *tfprotov5.UpgradeResourceIdentityRequest) (*tfprotov5.UpgradeResourceIdentityResponse, error) {
	return &tfprotov5.UpgradeResourceIdentityResponse{Diagnostics: p.refusal()}, nil
}

// GenerateResourceConfig refuses.
func (p provider) GenerateResourceConfig(context.Context, *tfprotov5.GenerateResourceConfigRequest) (*tfprotov5.GenerateResourceConfigResponse, error) {
	return &tfprotov5.GenerateResourceConfigResponse{Diagnostics: p.refusal()}, nil
}

// ReadDataSource refuses, unless there is a local API to read from.
func (p provider) ReadDataSource(ctx context.Context, request *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	if p.api != nil {
		state, err := p.readDataSource(ctx, request)
		return &tfprotov5.ReadDataSourceResponse{State: state, Diagnostics: failure(err)}, nil
	}
	return &tfprotov5.ReadDataSourceResponse{Diagnostics: p.refusal()}, nil
}

// GetFunctions returns none: modules use none.
func (provider) GetFunctions(context.Context, *tfprotov5.GetFunctionsRequest) (*tfprotov5.GetFunctionsResponse, error) {
	return &tfprotov5.GetFunctionsResponse{}, nil
}

// CallFunction refuses.
func (provider) CallFunction(context.Context, *tfprotov5.CallFunctionRequest) (*tfprotov5.CallFunctionResponse, error) {
	return nil, errRefused
}

// ValidateEphemeralResourceConfig refuses: records have no ephemeral resources.
func (provider) ValidateEphemeralResourceConfig(context.Context, *tfprotov5.ValidateEphemeralResourceConfigRequest) (*tfprotov5.ValidateEphemeralResourceConfigResponse, error) {
	return nil, errRefused
}

// OpenEphemeralResource refuses.
func (provider) OpenEphemeralResource(context.Context, *tfprotov5.OpenEphemeralResourceRequest) (*tfprotov5.OpenEphemeralResourceResponse, error) {
	return nil, errRefused
}

// RenewEphemeralResource refuses.
func (provider) RenewEphemeralResource(context.Context, *tfprotov5.RenewEphemeralResourceRequest) (*tfprotov5.RenewEphemeralResourceResponse, error) {
	return nil, errRefused
}

// CloseEphemeralResource refuses.
func (provider) CloseEphemeralResource(context.Context, *tfprotov5.CloseEphemeralResourceRequest) (*tfprotov5.CloseEphemeralResourceResponse, error) {
	return nil, errRefused
}
