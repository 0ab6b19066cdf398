//! The generator: EHRs and compositions as a function of (seed, EHR, composition).

use super::facts::{Body, CompositionContext, Facts};
use super::random::Random;
use super::truth::Truth;
use super::writer::{LANGUAGES, Names, template_of, write};
use crate::rm::tree::Tree;
use crate::rm::{json, time};
use crate::template::Template;

/// The number of subject ids. It has no common divisor with the step, so as many EHRs have
/// different subjects.
const SUBJECTS: u64 = 100_000_000;
const SUBJECT_STEP: u64 = 61_803_399;

/// Generates synthetic EHRs and compositions. Equal arguments give equal data on any machine.
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    /// The index of the first composition of each EHR, and as the last element the number of all
    /// compositions.
    firsts: Vec<usize>,
    names: Vec<Names>,
}

/// A synthetic EHR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EhrSample {
    /// The EHR id, a UUID.
    pub ehr_id: String,
    /// The id of the subject in [`EhrSample::subject_namespace`].
    pub subject_id: String,
    /// The namespace of the subject's id.
    pub subject_namespace: &'static str,
    /// The creation time of the EHR: ISO 8601 in UTC, before its first composition.
    pub time_created: String,
    /// Whether population queries may read it.
    pub is_queryable: bool,
}

/// A synthetic composition.
#[derive(Clone, Debug)]
pub struct CompositionSample {
    /// The index of its EHR.
    pub ehr: usize,
    /// A UUID for loading under fixed ids. It is not part of the JSON.
    pub uid: String,
    /// The id of its template.
    pub template_id: &'static str,
    /// Canonical JSON without white space.
    pub json: String,
    /// The facts of the composition, drawn before the document was made.
    pub truth: Vec<Truth>,
}

/// The share of compositions with a systolic pressure of 160 or more.
const HYPERTENSIVE: (usize, usize) = (1_234, 100_000);
/// The share of EHRs with the rare code.
const RARE: (usize, usize) = (77, 10_000);

impl Generator {
    /// Creates a generator of a number of EHRs and compositions. If there are at least as many
    /// compositions as EHRs, every EHR has one; most have few and some have very many.
    pub fn new(seed: u64, ehrs: usize, compositions: usize) -> Generator {
        Generator::with_templates(super::templates().map(|t| t.text), seed, ehrs, compositions)
    }

    /// Like [`Generator::new`], for a host that supplies the texts of the sample templates itself.
    pub fn with_templates<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        seed: u64,
        ehrs: usize,
        compositions: usize,
    ) -> Generator {
        let templates: Vec<Template> = texts
            .into_iter()
            .filter_map(|text| Template::parse(text).ok())
            .collect();
        let names = LANGUAGES
            .iter()
            .map(|(language, _)| Names::from_templates(&templates, language))
            .collect();
        Generator {
            seed,
            firsts: firsts(seed, ehrs, compositions),
            names,
        }
    }

    /// Returns the number of EHRs.
    pub fn ehrs(&self) -> usize {
        self.firsts.len() - 1
    }

    /// Returns the number of compositions.
    pub fn compositions(&self) -> usize {
        self.firsts.last().copied().unwrap_or_default()
    }

    /// Returns the indexes of the compositions of an EHR, in the order of time.
    pub fn compositions_of(&self, ehr: usize) -> std::ops::Range<usize> {
        let first = self.firsts.get(ehr).copied().unwrap_or_default();
        first..self.firsts.get(ehr + 1).copied().unwrap_or(first)
    }

    /// Generates one EHR.
    pub fn ehr(&self, ehr: usize) -> EhrSample {
        let mut random = Random::new([self.seed, 2, to_u64(ehr), 0]);
        let first = Random::new([self.seed, 2, 0, 1]).below(SUBJECTS);
        let ehr_id = uuid(&mut random);
        // One number of the sequence is skipped, so that samples stay as they were published.
        random.below(SUBJECTS);
        EhrSample {
            ehr_id,
            subject_id: format!("P{:08}", (first + to_u64(ehr) * SUBJECT_STEP) % SUBJECTS),
            subject_namespace: "sample.patients",
            is_queryable: !random.chance(100),
            time_created: time::format_nearest_utc(time::from_unix_millis(
                (self.clock(ehr).0 - 86_400) * 1000,
            )),
        }
    }

    /// Returns whether population queries may read an EHR.
    pub(super) fn is_queryable(&self, ehr: usize) -> bool {
        self.ehr(ehr).is_queryable
    }

    /// Generates one composition, independently of the others.
    pub fn composition(&self, index: usize) -> CompositionSample {
        let facts = self.facts(index);
        let json = self
            .written(&facts)
            .root()
            .map(json::write)
            .unwrap_or_default();
        CompositionSample {
            ehr: facts.ehr,
            uid: self.uid(index),
            template_id: template_of(&facts.body).0,
            json,
            truth: Truth::all_of(&facts),
        }
    }

    /// Generates the document of one composition: the result of reading the JSON of
    /// [`Generator::composition`].
    pub fn document(&self, index: usize) -> Tree {
        self.written(&self.facts(index))
    }

    /// Returns the uid of one composition, as in [`CompositionSample::uid`].
    pub fn uid(&self, index: usize) -> String {
        uuid(&mut Random::new([self.seed, 3, to_u64(index), 0]))
    }

    fn written(&self, facts: &Facts) -> Tree {
        let empty = Names::default();
        write(facts, self.names.get(facts.language).unwrap_or(&empty))
    }

    /// Returns the facts of one composition, without its JSON.
    pub(super) fn facts(&self, index: usize) -> Facts {
        let ehr = self
            .firsts
            .partition_point(|first| *first <= index)
            .saturating_sub(1);
        let own = self.compositions_of(ehr);
        let (start, step) = self.clock(ehr);
        let nth = index.saturating_sub(own.start);
        let jitter = Random::new([self.seed, 4, to_u64(index), 0]).between(0, step / 2);
        Facts::draw(CompositionContext {
            seed: self.seed,
            ehr,
            index: nth,
            seconds: start + step * i64::try_from(nth).unwrap_or_default() + jitter,
            is_hypertensive: is_chosen(index, HYPERTENSIVE),
            is_rare: nth == 0 && is_chosen(ehr, RARE),
        })
    }

    /// Returns the start of the compositions of an EHR (seconds since 1970) and the interval
    /// between them.
    fn clock(&self, ehr: usize) -> (i64, i64) {
        let count = i64::try_from(self.compositions_of(ehr).len())
            .unwrap_or(1)
            .max(1);
        let start =
            1_325_376_000 + Random::new([self.seed, 5, to_u64(ehr), 0]).between(0, 86_400_000);
        (start, (259_200_000 / count).min(3_456_000))
    }

    /// Returns the templates in use, as (template id, share of the compositions in percent).
    pub fn shares() -> [(&'static str, u32); 3] {
        let laboratory = Body::Laboratory {
            number: String::new(),
            status: "",
            panels: Vec::new(),
        };
        [
            (template_of(&Body::Vitals(Vec::new())).0, 70),
            (template_of(&laboratory).0, 20),
            (template_of(&Body::Problems(Vec::new())).0, 10),
        ]
    }
}

/// Returns the weights of the EHRs: 60 % have few compositions, 35 % some, 5 % very many.
fn weights(seed: u64, ehrs: usize) -> Vec<u64> {
    let weight = |ehr| {
        let mut random = Random::new([seed, 6, to_u64(ehr), 0]);
        match random.below(100) {
            0..60 => random.below(5),
            60..95 => 5 + random.below(15),
            _ => 49 + random.below(351),
        }
    };
    (0..ehrs).map(weight).collect()
}

/// Distributes the compositions by weights. Returns the number of the first composition of each
/// EHR, and behind them `compositions`.
fn firsts(seed: u64, ehrs: usize, compositions: usize) -> Vec<usize> {
    let weights = weights(seed, ehrs);
    let total = weights.iter().sum::<u64>().max(1);
    let (each, spare) = if compositions >= ehrs {
        (1, compositions - ehrs)
    } else {
        (0, compositions)
    };
    let mut firsts = vec![0];
    let mut before = 0;
    for (i, weight) in weights.iter().enumerate() {
        before += weight;
        let shared = u128::from(before) * u128::from(to_u64(spare)) / u128::from(total);
        firsts.push(each * (i + 1) + usize::try_from(shared).unwrap_or_default());
    }
    if let Some(last) = firsts.last_mut().filter(|_| ehrs > 0) {
        *last = compositions;
    }
    firsts
}

/// Returns whether an index belongs to a share: exactly `share.0` of `share.1` indexes are chosen,
/// evenly spread.
fn is_chosen(index: usize, share: (usize, usize)) -> bool {
    (index + 1) * share.0 / share.1 != index * share.0 / share.1
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn uuid(random: &mut Random) -> String {
    uuid::Builder::from_random_bytes(
        (u128::from(random.bits()) << 64 | u128::from(random.bits())).to_be_bytes(),
    )
    .into_uuid()
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rm::class::Cls;

    #[test]
    fn every_composition_is_canonical_and_valid() {
        let templates = crate::samples::templates().map(|t| Template::parse(t.text).unwrap());
        let generator = Generator::new(7, 200, 3000);
        let mut bytes = 0;
        for i in 0..generator.compositions() {
            let sample = generator.composition(i);
            let tree = json::read(&sample.json, Cls::COMPOSITION)
                .unwrap_or_else(|e| panic!("{i}: {e:?}\n{}", sample.json));
            assert!(
                generator
                    .document(i)
                    .root()
                    .unwrap()
                    .same_as(tree.root().unwrap()),
                "{i}: {}",
                sample.json
            );
            assert_eq!(generator.uid(i), sample.uid);
            let template = templates
                .iter()
                .find(|t| t.template_id == sample.template_id)
                .unwrap();
            let root = tree.root().unwrap();
            let findings = [
                crate::rm::validate::validate(root),
                crate::template::validate(root, template),
            ]
            .concat();
            assert!(findings.is_empty(), "{i}: {findings:?}");
            bytes += sample.json.len();
        }
        let mean = bytes / generator.compositions();
        assert!((4500..7500).contains(&mean), "{mean} bytes on average");
    }

    /// The same seed produces the same data in every version. A change of the generator changes this
    /// digest.
    #[test]
    fn the_data_of_a_seed_stays_the_same() {
        let generator = Generator::new(5, 40, 400);
        let all: Vec<String> = (0..400)
            .map(|i| generator.composition(i))
            .map(|sample| sample.uid + &sample.json)
            .collect();
        assert_eq!(
            crate::document::digest_of_text(&all.join("\n")),
            "40f959012a6639e57cc748a1ee91051c5b4141aa5c4e1d7af1206dd7e4af308b"
        );
    }

    #[test]
    fn names_come_from_the_templates() {
        let generator = Generator::new(1, 50, 500);
        for i in 0..500 {
            let json = generator.composition(i).json;
            assert!(!json.contains("\"value\":\"at"), "{json}");
            assert!(!json.contains("\"value\":\"\""), "{json}");
        }
    }

    #[test]
    fn shares_and_sums() {
        let generator = Generator::new(3, 1000, 10_000);
        assert_eq!((generator.ehrs(), generator.compositions()), (1000, 10_000));
        assert_eq!(
            (0..1000)
                .map(|e| generator.compositions_of(e).len())
                .sum::<usize>(),
            10_000
        );
        let most = (0..1000)
            .map(|e| generator.compositions_of(e).len())
            .max()
            .unwrap();
        assert!(most > 100, "{most}");
        for (template, share) in Generator::shares() {
            let count = (0..10_000)
                .filter(|i| template_of(&generator.facts(*i).body).0 == template)
                .count();
            assert!(
                count.abs_diff(usize::try_from(share * 100).unwrap()) < 200,
                "{template} {count}"
            );
        }
        assert_eq!(
            (0..100_000).filter(|i| is_chosen(*i, HYPERTENSIVE)).count(),
            1234
        );
        assert_eq!(
            generator.composition(77).json,
            Generator::new(3, 1000, 10_000).composition(77).json
        );
        assert_eq!(Generator::new(3, 10, 4).compositions(), 4);
        assert_eq!(Generator::new(3, 0, 0).ehrs(), 0);
    }

    #[test]
    fn templates_read_without_a_warning() {
        for sample in crate::samples::templates() {
            let template = Template::parse(sample.text).unwrap();
            assert_eq!(template.template_id, sample.template_id);
            assert!(template.warnings.is_empty(), "{:?}", template.warnings);
            assert_eq!(template.languages.len(), 4);
        }
    }
}
