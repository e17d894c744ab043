package main

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// absent is the id of what is not wanted.
const absent = "none"

// optional makes a resource of another that need not be there: where `wanted` is false it is nothing, and asks the cloud for nothing. Programs
// in languages without conditions have it, such as Pulumi's YAML.
func optional(of *schema.Resource) *schema.Resource {
	made := *of
	made.Schema = maps.Clone(of.Schema)
	made.Schema["wanted"] = &schema.Schema{Type: schema.TypeBool, Required: true, ForceNew: true}
	made.CreateContext = func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		if !d.Get("wanted").(bool) {
			d.SetId(absent)
			return setEmpty(d, made.Schema)
		}
		return of.CreateContext(ctx, d, meta)
	}
	made.ReadContext = ifWanted(made.Schema, of.ReadContext)
	made.DeleteContext = ifWanted(made.Schema, of.DeleteContext)
	if of.UpdateContext != nil {
		made.UpdateContext = ifWanted(made.Schema, of.UpdateContext)
	}
	return &made
}

// setEmpty sets the lists that a program may read. Nothing has none.
func setEmpty(d *schema.ResourceData, fields map[string]*schema.Schema) diag.Diagnostics {
	for name, field := range fields {
		if field.Type == schema.TypeList && field.Computed {
			if err := d.Set(name, []any{}); err != nil {
				return diag.FromErr(err)
			}
		}
	}
	return nil
}

func ifWanted[F ~func(context.Context, *schema.ResourceData, any) diag.Diagnostics](fields map[string]*schema.Schema, carryOut F) F {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		if d.Id() == absent {
			return setEmpty(d, fields)
		}
		return carryOut(ctx, d, meta)
	}
}
