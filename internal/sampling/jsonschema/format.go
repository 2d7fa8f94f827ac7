package jsonschema

import "encoding/json"

// formats are patterns of strings that certainly are of a format, if not all of
// them: those whose readers are strict. Other formats only describe.
var formats = map[string]string{
	"date-time": "^" + aDate + "T" + aTime + "$",
	"date":      "^" + aDate + "$",
	"time":      "^" + aTime + "$",
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
	"email":     `^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@([A-Za-z0-9]+(-[A-Za-z0-9]+)*\.)+[A-Za-z]{2,}$`,
}

// Dates have the days that their month has in every year.
const (
	aDate = `(19|20)[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))`
	aTime = `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])`
)

// formatOf is the pattern that a schema's format stands for, "" for none.
func formatOf(o *object) string {
	var name string
	if json.Unmarshal(o.values["format"], &name) != nil {
		return "" // absent, or nothing that anybody reads
	}
	return formats[name]
}
