package webhooks

import (
	"strings"
	"testing"
)

func TestSetupNamesTheOptionThatIsMissing(t *testing.T) {
	if err := SetupWithManager(nil, Options{}); err == nil || !strings.Contains(err.Error(), "options Catalog and Installation are required") {
		t.Errorf("got %v", err)
	}
}
