package modules_test

import (
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1"
	machinev1alpha1 "github.com/openshift/api/machine/v1alpha1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// apiTypes are the types that providerSpecs of modules have in the Machine API, by the module. Others are the modules' own.
var apiTypes = map[string]reflect.Type{
	"aws":       reflect.TypeFor[machinev1beta1.AWSMachineProviderConfig](),
	"azure":     reflect.TypeFor[machinev1beta1.AzureMachineProviderSpec](),
	"gcp":       reflect.TypeFor[machinev1beta1.GCPMachineProviderSpec](),
	"nutanix":   reflect.TypeFor[machinev1.NutanixMachineProviderConfig](),
	"openstack": reflect.TypeFor[machinev1alpha1.OpenstackProviderSpec](),
	"vsphere":   reflect.TypeFor[machinev1beta1.VSphereMachineProviderSpec](),
}

// notSupported is what the README writes of a field that the Machine API has and the module does not.
const notSupported = "not supported"

// TestTheREADMEHasEveryField compares the README's table of a module with the type of provider_spec, both ways.
func TestTheREADMEHasEveryField(t *testing.T) {
	each(t, hasEveryField)
}

func hasEveryField(t *testing.T, m kept) {
	t.Helper()
	rows, fields := table(t, m.files), fieldsOf(m)
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		if rowFor(rows, path) == "" {
			t.Errorf("README.md: the table under providerSpec has no row for %s, a field of provider_spec", path)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		serves := func(path string) bool { return covers(row, path) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(fields)), serves) && !strings.Contains(rows[row], notSupported) {
			t.Errorf("README.md: the table under providerSpec has a row for %s, which is no field of provider_spec; remove it, or write that it is %s", row, notSupported)
		}
	}
}

// TestEveryFieldOfTheMachineAPIIsKnown compares a module with the type of its providerSpec in the Machine API: each field is one of
// provider_spec, or the README says that it is not supported; and provider_spec has no field that the type lacks, or has otherwise.
func TestEveryFieldOfTheMachineAPIIsKnown(t *testing.T) {
	each(t, knowsTheMachineAPI)
}

func knowsTheMachineAPI(t *testing.T, m kept) {
	t.Helper()
	api, known := apiTypes[m.Name()]
	if !known {
		t.Skip("its providerSpec has no type in the Machine API")
	}
	wanted := map[string]string{}
	jsonFields(api, "", wanted)
	rows, fields := table(t, m.files), fieldsOf(m)
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		switch got, served := fields[path]; {
		case !served && !strings.Contains(rowFor(rows, path), notSupported):
			t.Errorf("%s of %s is neither a field of provider_spec nor %q in the README's table", path, api, notSupported)
		case served && got != wanted[path]:
			t.Errorf("%s is a %s in provider_spec and a %s in %s", path, got, wanted[path], api)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		if _, there := wanted[path]; !there {
			t.Errorf("%s is a field of provider_spec, but not of %s; correct its spelling, or remove it", path, api)
		}
	}
}

// fieldsOf returns the fields of provider_spec and their kinds, by their paths.
func fieldsOf(m kept) map[string]string {
	fields := map[string]string{}
	hclFields(m.Variable(module.VariableProviderSpec).Type, "", fields)
	return fields
}

// hclFields adds what is at a path of a type constraint: the parts of objects, "[]" for each element of a list.
func hclFields(constraint cty.Type, path string, fields map[string]string) {
	switch {
	case constraint.IsObjectType():
		for name, attribute := range constraint.AttributeTypes() {
			hclFields(attribute, strings.TrimPrefix(path+"."+name, "."), fields)
		}
	case constraint.IsListType() || constraint.IsSetType():
		hclFields(constraint.ElementType(), path+"[]", fields)
	case constraint.IsMapType():
		hclFields(constraint.ElementType(), path+"{}", fields)
	default:
		fields[path] = constraint.FriendlyName()
	}
}

// jsonFields does the same for a Go type, by the names that its JSON has.
func jsonFields(from reflect.Type, path string, fields map[string]string) {
	if from == reflect.TypeFor[resource.Quantity]() { // written as a string
		fields[path] = cty.String.FriendlyName()
		return
	}
	switch from.Kind() {
	case reflect.Pointer:
		jsonFields(from.Elem(), path, fields)
	case reflect.Slice:
		jsonFields(from.Elem(), path+"[]", fields)
	case reflect.Map:
		jsonFields(from.Elem(), path+"{}", fields)
	case reflect.Struct:
		for i := range from.NumField() {
			structField(from.Field(i), path, fields)
		}
	case reflect.String:
		fields[path] = cty.String.FriendlyName()
	case reflect.Bool:
		fields[path] = cty.Bool.FriendlyName()
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		fields[path] = cty.Number.FriendlyName()
	default:
		fields[path] = fmt.Sprintf("type %s, which this test does not know", from)
	}
}

func structField(field reflect.StructField, path string, fields map[string]string) {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case field.Type == reflect.TypeFor[metav1.TypeMeta](), field.Type == reflect.TypeFor[metav1.ObjectMeta]():
		// They belong to the object, not to its fields.
	case name == "" && field.Anonymous:
		jsonFields(field.Type, path, fields)
	default:
		jsonFields(field.Type, strings.TrimPrefix(path+"."+name, "."), fields)
	}
}

var (
	section    = regexp.MustCompile(`(?s)\n## providerSpec\n(.*?)(\n## |$)`)
	tableRow   = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|(.*)$")
	quotedName = regexp.MustCompile("`([^`]+)`")
)

// table reads the README's table: each field that a row is for, and what the row says.
func table(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	content, err := fs.ReadFile(files, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	under := section.FindSubmatch(content)
	if under == nil {
		t.Fatal("README.md: there is no section providerSpec")
	}
	rows := map[string]string{}
	for _, match := range tableRow.FindAllSubmatch(under[1], -1) {
		last := ""
		for _, name := range quotedName.FindAllSubmatch(match[1], -1) {
			path := string(name[1])
			if strings.HasPrefix(path, ".") { // beside the one before
				path = last[:strings.LastIndex(last, ".")] + path
			}
			if _, twice := rows[path]; twice {
				t.Errorf("README.md: the table under providerSpec has two rows for %s", path)
			}
			rows[path], last = string(match[2]), path
		}
	}
	return rows
}

// rowFor returns what the table says of a field, in a row of its own or else of what it is a part of; "" when there is none.
func rowFor(rows map[string]string, path string) string {
	closest := ""
	for row := range rows {
		if covers(row, path) && len(row) > len(closest) {
			closest = row
		}
	}
	return rows[closest]
}

// covers reports whether a row is for a field, or for what it is a part of.
func covers(row, path string) bool {
	return path == row || strings.HasPrefix(path, row+".") || strings.HasPrefix(path, row+"[]") || strings.HasPrefix(path, row+"{}")
}
