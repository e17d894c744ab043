package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// awsResources reads the resources that modules/aws imports, by their ID; nil where one is not there.
var awsResources = map[string]func(ctx context.Context, a *awsAPI, id string) (fields, error){
	"aws_instance": func(ctx context.Context, a *awsAPI, id string) (fields, error) {
		found, err := a.instance(ctx, id)
		if found != nil {
			found["tags_all"] = found["tags"]
		}
		return found, err
	},
	"aws_ec2_tag": readTag,
}

// readTag reads one tag of something; its ID is that of the thing, a comma and the name.
func readTag(ctx context.Context, a *awsAPI, id string) (fields, error) {
	resource, name, _ := strings.Cut(id, ",")
	arguments := url.Values{}
	addFilter(arguments, "resource-id", []string{resource})
	addFilter(arguments, "key", []string{name})
	response, err := a.ec2(ctx, "DescribeTags", arguments)
	if err != nil {
		return nil, err
	}
	for _, one := range response.all("tagSet/item") {
		return fields{"id": id, "resource_id": resource, "key": name, "value": one.text("value"), "region": a.region}, nil
	}
	return nil, nil
}

// configure takes the region of a provider block.
func (a *awsAPI) configure(schema *tfprotov5.Schema, config *tfprotov5.DynamicValue) error {
	given, err := decode(schema, config)
	if err == nil {
		a.region = textOf(given["region"])
	}
	return err
}

// readDataSource reads a data source. Arguments stay as they are given.
func (p provider) readDataSource(ctx context.Context, request *tfprotov5.ReadDataSourceRequest) (*tfprotov5.DynamicValue, error) {
	schema, read := p.schema.DataSources[request.TypeName], awsDataSources[request.TypeName]
	if schema == nil || read == nil {
		return nil, fmt.Errorf("%s is not read from a local API", request.TypeName)
	}
	given, err := decode(schema, request.Config)
	if err != nil {
		return nil, err
	}
	found, err := read(ctx, p.api, given)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", request.TypeName, err)
	}
	kind := schema.ValueType()
	constraints := kind.(tftypes.Object).AttributeTypes
	for name, value := range found {
		constraint, declared := constraints[name]
		if !declared || !given[name].IsNull() {
			continue
		}
		if given[name], err = valueOf(constraint, value); err != nil {
			return nil, fmt.Errorf("reading %s: %s: %w", request.TypeName, name, err)
		}
	}
	encoded, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, given))
	return &encoded, err
}

// readResource returns the state of a resource as it is now; one of nothing where it is gone.
func (p provider) readResource(ctx context.Context, name, id string) (*tfprotov5.DynamicValue, bool, error) {
	schema, read := p.schema.Resources[name], awsResources[name]
	if schema == nil || read == nil {
		return nil, false, fmt.Errorf("%s is not read from a local API", name)
	}
	found, err := read(ctx, p.api, id)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s %s: %w", name, id, err)
	}
	kind := schema.ValueType()
	state := tftypes.NewValue(kind, nil)
	if found != nil {
		if state, err = stateOf(schema.Block, found); err != nil {
			return nil, false, fmt.Errorf("reading %s %s: %w", name, id, err)
		}
	}
	encoded, err := tfprotov5.NewDynamicValue(kind, state)
	return &encoded, found != nil, err
}

// stateOf returns a block with some attributes; the others are null, and of inner blocks there are none.
func stateOf(block *tfprotov5.SchemaBlock, given fields) (tftypes.Value, error) {
	kind := block.ValueType()
	value, err := objectOf(kind, given)
	if err != nil {
		return value, err
	}
	parts := map[string]tftypes.Value{}
	if err := value.As(&parts); err != nil {
		return value, err
	}
	for _, inner := range block.BlockTypes {
		if inner.Nesting == tfprotov5.SchemaNestedBlockNestingModeList || inner.Nesting == tfprotov5.SchemaNestedBlockNestingModeSet {
			parts[inner.TypeName] = tftypes.NewValue(parts[inner.TypeName].Type(), []tftypes.Value{})
		}
	}
	return tftypes.NewValue(kind, parts), nil
}

// plan returns what is proposed. Of what is made, attributes that the schema computes and nothing sets are unknown.
func (p provider) plan(request *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.DynamicValue, error) {
	schema := p.schema.Resources[request.TypeName]
	if schema == nil {
		return nil, fmt.Errorf("%s is not in the record", request.TypeName)
	}
	kind := schema.ValueType()
	prior, err := request.PriorState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	proposed, err := request.ProposedNewState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	if proposed.IsNull() || !prior.IsNull() {
		return request.ProposedNewState, nil
	}
	parts := map[string]tftypes.Value{}
	if err := proposed.As(&parts); err != nil {
		return nil, err
	}
	parts = maps.Clone(parts)
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed && parts[attribute.Name].IsNull() {
			parts[attribute.Name] = tftypes.NewValue(attribute.Type, tftypes.UnknownValue)
		}
	}
	encoded, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, parts))
	return &encoded, err
}

// decode returns the attributes and blocks of a value.
func decode(schema *tfprotov5.Schema, value *tfprotov5.DynamicValue) (map[string]tftypes.Value, error) {
	decoded, err := value.Unmarshal(schema.ValueType())
	if err != nil {
		return nil, err
	}
	parts := map[string]tftypes.Value{}
	return parts, decoded.As(&parts)
}

// failure is the diagnostics of an error; none where there is none.
func failure(err error) []*tfprotov5.Diagnostic {
	if err == nil {
		return nil
	}
	return []*tfprotov5.Diagnostic{{Severity: tfprotov5.DiagnosticSeverityError, Summary: err.Error()}}
}
