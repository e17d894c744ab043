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
			return nil
		}
		return of.CreateContext(ctx, d, meta)
	}
	made.ReadContext = ifWanted(of.ReadContext)
	made.DeleteContext = ifWanted(of.DeleteContext)
	if of.UpdateContext != nil {
		made.UpdateContext = ifWanted(of.UpdateContext)
	}
	return &made
}

func ifWanted[F ~func(context.Context, *schema.ResourceData, any) diag.Diagnostics](carryOut F) F {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		if d.Id() == absent {
			return nil
		}
		return carryOut(ctx, d, meta)
	}
}
