// The text from which the user starts a new guide.

/** The text of a new guide. */
export const BLANK = `{
  "id": "New_guide.v1",
  "gdl_version": "2.0",
  "concept": "gt0001",
  "language": { "original_language": "ISO_639-1::en" },
  "description": { "details": { "en": { "id": "en", "purpose": "", "use": "", "misuse": "" } } },
  "definition": {
    "data_bindings": {
      "gt0002": {
        "id": "gt0002",
        "model_id": "openEHR-EHR-OBSERVATION.body_weight.v2",
        "type": "INPUT",
        "elements": {
          "gt0003": { "id": "gt0003", "path": "/data[at0002]/events[at0003]/data[at0001]/items[at0004]" }
        }
      },
      "gt0004": {
        "id": "gt0004",
        "model_id": "openEHR-EHR-EVALUATION.recommendation.v2",
        "type": "OUTPUT",
        "elements": {
          "gt0005": { "id": "gt0005", "path": "/data[at0001]/items[at0002]" }
        }
      }
    },
    "rules": {
      "gt0006": {
        "id": "gt0006",
        "priority": 1,
        "when": ["$gt0003|Weight| > 100,kg"],
        "then": ["$gt0005|Advice| = 'See a dietitian'"]
      }
    }
  },
  "ontology": {
    "term_definitions": {
      "en": {
        "terms": {
          "gt0001": { "id": "gt0001", "text": "New guide", "description": "" },
          "gt0002": { "id": "gt0002", "text": "Body weight", "description": "" },
          "gt0003": { "id": "gt0003", "text": "Weight", "description": "" },
          "gt0004": { "id": "gt0004", "text": "Recommendation", "description": "" },
          "gt0005": { "id": "gt0005", "text": "Advice", "description": "" },
          "gt0006": { "id": "gt0006", "text": "Heavy", "description": "" }
        }
      }
    }
  }
}
`;
