package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
)

// provider serves a schema. It has what an engine calls to validate a module and to read its state, and refuses to be
// configured. No engine calls the rest of a provider that refused, so the embedded interface is nil.
type provider struct {
	tfprotov5.ProviderServer
	version string
	schema  *providerSchema
}

// refusal says why nothing is made.
func (p provider) refusal() []*tfprotov5.Diagnostic {
	return []*tfprotov5.Diagnostic{{
		Severity: tfprotov5.DiagnosticSeverityError,
		Summary:  fmt.Sprintf("This is only the recorded schema of %s %s", p.schema.Address, p.version),
		Detail: "The plugin serves a schema, for validation and for tests with a mocked provider; it can make nothing. " +
			"Run with a provider mirror that has the provider itself.",
	}}
}

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

// ConfigureProvider refuses.
func (p provider) ConfigureProvider(context.Context, *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
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

// GetFunctions returns none: modules use none.
func (provider) GetFunctions(context.Context, *tfprotov5.GetFunctionsRequest) (*tfprotov5.GetFunctionsResponse, error) {
	return &tfprotov5.GetFunctionsResponse{}, nil
}
