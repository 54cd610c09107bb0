import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'

const schema = Type.Object({
  FUZZ_SEED: Type.Integer({ default: 1, minimum: 0, description: 'The same seed is the same requests.' }),
  FUZZ_MINUTES: Type.Number({ default: 5, exclusiveMinimum: 0, description: 'How long.' }),
})

/** Which requests and for how long, from the environment that `npm run fuzz` makes of its arguments. */
export const fuzzConfig = () => envSchema<Static<typeof schema>>({ schema })
