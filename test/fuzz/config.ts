import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'

const schema = Type.Object({
  FUZZ_SEED: Type.Integer({ default: 1, minimum: 0, description: 'Seed of the requests.' }),
  FUZZ_MINUTES: Type.Number({ default: 5, exclusiveMinimum: 0, description: 'Duration.' }),
})

/** Reads seed and duration from the environment, which `npm run verify -- fuzz` sets from its arguments. */
export const fuzzConfig = () => envSchema<Static<typeof schema>>({ schema })
