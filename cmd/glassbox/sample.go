package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/glassboxhq/glassbox"
)

func sampleActor() glassbox.Actor {
	return glassbox.Actor{ID: "sample-agent", Thread: "sample", Run: "sample-run"}
}

// The sample is what an agent does all day: a small project goes in, a test
// fails, a file is edited, the test passes, a file goes.
const (
	sampleCode = `def price(amount, discount):
    return amount - discount * amount / 10
`
	sampleTest = `import unittest

from shop import price


class PriceTest(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(price(200, 25), 150)


if __name__ == "__main__":
    unittest.main()
`
	sampleNotes = "25 % off 200 must be 150\n"
)

func runSample(ctx context.Context, box *glassbox.Sandbox) error {
	for _, f := range [][2]string{{"shop.py", sampleCode}, {"test_shop.py", sampleTest}, {"notes.txt", sampleNotes}} {
		if _, err := box.Write(ctx, "shop/"+f[0], strings.NewReader(f[1]), nil); err != nil {
			return err
		}
	}
	test := &glassbox.Command{Dir: "shop"}
	if err := expect(ctx, box, test, 1); err != nil {
		return err
	}
	code, err := box.ReadFile(ctx, "shop/shop.py")
	if err != nil {
		return err
	}
	mended := strings.Replace(string(code), "/ 10", "/ 100", 1)
	if _, err := box.Write(ctx, "shop/shop.py", strings.NewReader(mended), nil); err != nil {
		return err
	}
	if err := expect(ctx, box, test, 0); err != nil {
		return err
	}
	return box.Remove(ctx, "shop/notes.txt", nil)
}

func expect(ctx context.Context, box *glassbox.Sandbox, cmd *glassbox.Command, exit int) error {
	res, err := box.Run(ctx, "python3 -m unittest -v", cmd)
	if err != nil {
		return err
	}
	if res.ExitCode != exit {
		return fmt.Errorf("the sample's test ended with %d, not %d: %s", res.ExitCode, exit, res.Stderr)
	}
	return nil
}
