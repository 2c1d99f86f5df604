package secret_test

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/secret"
)

func Example() {
	login := struct {
		User     string
		Password secret.Text
	}{"ann", secret.New("open sesame")}
	fmt.Printf("%+v\n", login)
	fmt.Println(len(login.Password.Reveal()))
	// Output:
	// {User:ann Password:(secret)}
	// 11
}
