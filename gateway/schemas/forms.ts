import { Type } from 'typebox'
import { Strict, WellFormed } from './fields.ts'

const FIELDS_MAX = 64

/** The installation defines the fields of a form, and the core validates them. */
export const SubmitFormBody = Strict(
  { fields: Type.Record(Type.String(), WellFormed(), { maxProperties: FIELDS_MAX }) },
  { examples: [{ fields: { name: 'Ada', email: 'ada@example.com' } }] },
)

export const SubmitFormAnswer = Strict(
  { formSubmissionId: Type.String() },
  { description: 'The submission and its lead are stored durably.', examples: [{ formSubmissionId: 'frm_4t7n2c' }] },
)
