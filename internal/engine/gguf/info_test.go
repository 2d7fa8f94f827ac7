package gguf

import "testing"

func TestDemo(t *testing.T) {
	m, err := Inspect("../../demomodel/demo-q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", m)
}
