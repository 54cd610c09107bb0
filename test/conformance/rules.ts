import { failures } from './failure-table.ts'
import sections from './rules.json' with { type: 'json' }

/** One rule of the specification or the contract. */
export interface Rule {
  id: string
  /** Section of the rule. S1 is section 1 of the specification; C1 is section 1 of the contract. */
  section: string
  sentence: string
}

const errorRules: Rule[] = Object.entries(failures).map(([code, [status, retryable, terminal]]) => ({
  id: `E.${code}`,
  section: 'C1',
  sentence: `${code} is ${status}, ${retryable ? '' : 'not '}retryable, ${terminal ? '' : 'not '}terminal`,
}))

export const rules: Rule[] = [
  ...Object.entries(sections).flatMap(([section, sentences]) =>
    Object.entries(sentences).map(([id, sentence]) => ({ id, section, sentence })),
  ),
  ...errorRules,
]
