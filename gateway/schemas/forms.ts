import { Type } from 'typebox'
import { Strict } from './fields.ts'

const FIELDS_MAX = 64

/** Which fields a form has is the installation's to say, and the core's to judge. */
export const SubmitFormBody = Strict(
  { fields: Type.Record(Type.String(), Type.String(), { maxProperties: FIELDS_MAX }) },
  { examples: [{ fields: { name: 'Ada', email: 'ada@example.com' } }] },
)

export const SubmitFormAnswer = Strict(
  { formSubmissionId: Type.String() },
  { description: 'The submission and its lead are durable.', examples: [{ formSubmissionId: 'frm_4t7n2c' }] },
)
