// Package openai is the outer shape of the API: requests as clients send them,
// answers and errors as clients expect them. It holds no state and knows
// nothing of models, nodes or networks. docs/api.md lists each parameter.
package openai
