// Package gitops_test evaluates the health checks of docs/gitops.md, in Lua as Argo CD does and in
// CEL as Flux does, over objects recorded from a cluster.
package gitops_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// health is what Argo CD and Flux say about each recorded object. Flux has healthy, in progress and failed only.
var health = map[string]struct{ argo, flux string }{
	"machine-healthy":                     {"Healthy", "current"},
	"machine-progressing":                 {"Progressing", ""},
	"machine-deleting":                    {"Progressing", ""},
	"machine-refused":                     {"Degraded", "failed"},
	"machine-broken":                      {"Degraded", "failed"},
	"machine-paused":                      {"Suspended", "current"},
	"machineset-healthy":                  {"Healthy", "current"},
	"machineset-progressing":              {"Progressing", ""},
	"machineset-unobserved":               {"Progressing", ""},
	"machineset-paused":                   {"Suspended", "current"},
	"machinedeployment-healthy":           {argo: "Healthy"},
	"machinedeployment-progressing":       {argo: "Progressing"},
	"machinedeployment-unobserved":        {argo: "Progressing"},
	"machinedeployment-suspended":         {argo: "Suspended"},
	"machinedeployment-needs-replacement": {argo: "Degraded"},
}

func TestHealthChecks(t *testing.T) {
	argo, flux := checks(t)
	for name, want := range health {
		t.Run(name, func(t *testing.T) {
			object := recorded(t, name)
			kind := object["kind"].(string)
			if got := evaluateLua(t, argo["resource.customizations.health.machine.openshift.io_"+kind], object); got != want.argo {
				t.Errorf("Argo CD: got %s, want %s", got, want.argo)
			}
			if kind == "MachineDeployment" { // Flux uses kstatus
				return
			}
			if got := evaluateCEL(t, flux[kind], object); got != want.flux {
				t.Errorf("Flux: got %q, want %q", got, want.flux)
			}
		})
	}
}

// checks returns the blocks of the page: Lua by key of argocd-cm, and CEL by kind.
func checks(t *testing.T) (map[string]string, map[string]fluxCheck) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	argo, flux := map[string]string{}, map[string]fluxCheck{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		var content struct {
			Data map[string]string `json:"data"`
			Spec struct {
				HealthCheckExprs []fluxCheck `json:"healthCheckExprs"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(block[1]), &content); err != nil {
			t.Fatal(err)
		}
		for key, script := range content.Data {
			argo[key] = script
		}
		for _, check := range content.Spec.HealthCheckExprs {
			flux[check.Kind] = check
		}
	}
	return argo, flux
}

type fluxCheck struct {
	Kind    string `json:"kind"`
	Current string `json:"current"`
	Failed  string `json:"failed"`
}

// recorded reads an object. "-paused" is the healthy one while another API is authoritative.
func recorded(t *testing.T, name string) map[string]any {
	t.Helper()
	file, paused := strings.CutSuffix(name, "-paused")
	if paused {
		file += "-healthy"
	}
	content, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	if paused {
		status := object["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(conditions, map[string]any{"type": "Paused", "status": "True", "message": "ClusterAPI is authoritative"})
	}
	return object
}

func evaluateLua(t *testing.T, script string, object map[string]any) string {
	t.Helper()
	if script == "" {
		t.Fatal("the page has no check of this kind")
	}
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	return state.Get(-1).(*lua.LTable).RawGetString("status").String()
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, element := range v {
			table.RawSetString(key, luaValue(state, element))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range v {
			table.Append(luaValue(state, element))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	default:
		return lua.LNil
	}
}

// evaluateCEL returns "failed", "current" or nothing, as Flux asks: the fields of the object are
// the variables, and an expression that fails means that the object is in progress.
func evaluateCEL(t *testing.T, check fluxCheck, object map[string]any) string {
	t.Helper()
	for _, one := range []struct{ name, expression string }{{"failed", check.Failed}, {"current", check.Current}} {
		if one.expression == "" {
			continue
		}
		environment, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := environment.Compile(one.expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := environment.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		result, _, err := program.Eval(object)
		if err != nil {
			t.Logf("%s: %v", one.name, err)
			continue
		}
		if result.Value() == true {
			return one.name
		}
	}
	return ""
}
