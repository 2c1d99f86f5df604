package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/vectors.json anew")

const vectorFile = "testdata/vectors.json"

// A vector is an encoded message with its expected meaning, for implementations in any language.
type vector struct {
	Name string `json:"name"`
	// Message is the full name of the message's type.
	Message string `json:"message"`
	Hex     string `json:"hex"`
	// JSON is the message in protobuf's JSON mapping.
	JSON json.RawMessage `json:"json"`
	// Refused is the kind of error with which a receiver rejects the message; "" if it is valid.
	Refused string `json:"refused,omitempty"`
	// Decode: another encoding is preferred; for decoding only.
	Decode bool `json:"decodeOnly,omitempty"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%s: %v", vectorFile, err)
	}
	return out
}

func (v *vector) new(t testing.TB) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(v.Message))
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// newVector encodes a message. Its Refused is the kind of the decoding error.
func newVector(t testing.TB, name string, m proto.Message, encoded []byte) vector {
	t.Helper()
	v := vector{Name: name, Message: string(m.ProtoReflect().Descriptor().FullName()), Decode: encoded != nil}
	if encoded == nil {
		var err error
		if encoded, err = (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
			t.Fatal(err)
		}
	}
	v.Hex = hex.EncodeToString(encoded)
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer // protojson output has random white space
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	v.JSON = compact.Bytes()
	if err := readAny(m); err != nil {
		v.Refused = leasehold.KindOf(err).Error()
	}
	return v
}

// The vectors of the file equal those of this package. After an intended change run the test with -rewrite
// and check the difference: a changed line breaks compatibility with peers.
func TestVectors(t *testing.T) {
	want := allVectors(t)
	if *rewrite {
		b, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorFile, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := readVectors(t)
	sameJSON := cmp.Transformer("json", func(m json.RawMessage) (out any) {
		if err := json.Unmarshal(m, &out); err != nil {
			t.Fatal(err)
		}
		return out
	})
	if diff := cmp.Diff(want, got, sameJSON); diff != "" {
		t.Errorf("%s (-written now +file):\n%s", vectorFile, diff)
	}
}

// The bytes and the JSON of each vector are the same message, and decoding it has the expected result.
// Implementations in other languages have the same test.
func TestVectorsDecode(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			b, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			fromHex, fromJSON := v.new(t), v.new(t)
			if err := proto.Unmarshal(b, fromHex); err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal(v.JSON, fromJSON); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromJSON, fromHex, protocmp.Transform(), protocmp.IgnoreUnknown()); diff != "" {
				t.Errorf("-json +hex:\n%s", diff)
			}
			refused := ""
			if err := readAny(fromHex); err != nil {
				refused = leasehold.KindOf(err).Error()
			}
			if refused != v.Refused {
				t.Errorf("decoding: %q, want %q", refused, v.Refused)
			}
		})
	}
}
