package main

import "testing"

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "+x": "'+x", "-rf": "'-rf", "@SUM(A1)": "'@SUM(A1)", "＝1": "'＝1",
		"a=b": "a=b", "\t=1": " =1", "one\ntwo": "one\ntwo", "bell\a": "bell\uFFFD", "研究": "研究",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
