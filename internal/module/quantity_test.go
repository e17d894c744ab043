package module_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestAQuantityIsReadInBoundedTime(t *testing.T) {
	loaded := moduletest.Load(t, statedSize(fromBoth)...)
	for _, memory := range []string{"1e-300000000", "1234567890123456789012345e300000000", "1E-999999999", strings.Repeat("9", 1<<20), "1e300000000"} {
		done := make(chan error, 1)
		go func() {
			_, err := module.SizeOf(loaded, spec(map[string]cty.Value{"size": cty.StringVal("small"), "memory": cty.StringVal(memory)}))
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "memory: not a valid amount of memory; write a quantity, for example 16Gi") {
				t.Errorf("%.40s: %v", memory, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%.40s: not read in a minute", memory)
		}
	}
}

func TestACatalogueIsReadInBoundedTime(t *testing.T) {
	const want = `has a quantity of memory that is too long or has too large an exponent; write it as "4" or "16Gi"`
	for _, memory := range []string{`"1e-300000000"`, `"1234567890123456789012345E+300000000"`, `"` + strings.Repeat("9", 1000) + `"`} {
		done := make(chan error, 1)
		go func() {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, withFile(typesFile+"  - {name: m7.large, cpu: 2, memory: "+memory+"}\n")...)))
			done <- err
		}()
		select {
		case err := <-done:
			if _, broken := errors.AsType[*contract.Error](err); !broken || !strings.Contains(err.Error(), want) {
				t.Errorf("%.40s: %v", memory, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%.40s: not read in a minute", memory)
		}
	}
}
