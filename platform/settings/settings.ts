import { readFileSync } from 'node:fs'
import { envSchema } from 'env-schema'
import Type, { type Static, type TProperties } from 'typebox'
import { SettingError } from './start-faults.ts'

export { SettingError }

type Texts<Properties> = { [Name in keyof Properties]?: string }

/** Gives settings the texts that documents and errors show. */
export function described<Properties extends TProperties>(properties: Properties, texts: Texts<Properties>) {
  for (const [name, description] of Object.entries(texts)) Object.assign(properties[name]!, { description })
  return properties
}

/** `texts` describes the settings that have no description yet. */
export function defineSettings<Properties extends TProperties>(properties: Properties, texts: Texts<Properties>) {
  const schema = Type.Object(described(properties, texts))
  return {
    properties,
    /**
     * Reads settings from an environment. An empty variable counts as not set. `NAME_FILE` may name a file with the
     * value of `NAME`. Errors: `SettingError`.
     */
    read(env: NodeJS.ProcessEnv) {
      const data = Object.fromEntries(Object.keys(properties).flatMap((name) => givenValue(name, env)))
      try {
        return envSchema<Static<typeof schema>>({ schema, data, env: false })
      } catch (error) {
        const { errors } = error as { errors?: { instancePath: string }[] }
        if (errors === undefined) throw error
        const names = [...new Set(errors.map(({ instancePath }) => instancePath.slice(1)))]
        throw new SettingError(names.map((name) => `${name} ${ruleOf(properties[name]!)}`).join('\n'))
      }
    },
  }
}

/** Suffix of variables that name a file with a setting, because secrets of orchestrators are files. */
export const fileSuffix = '_FILE'

function givenValue(name: string, env: NodeJS.ProcessEnv): [string, string][] {
  const value = env[name]
  const path = env[name + fileSuffix]
  if (!path) return value ? [[name, value]] : []
  if (value) throw new SettingError(`${name} and ${name + fileSuffix} are both set: set one of them`)
  try {
    const content = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    if (content !== '') return [[name, content]]
  } catch (error) {
    throw new SettingError(`${name + fileSuffix}: cannot read ${path} (${(error as NodeJS.ErrnoException).code})`)
  }
  throw new SettingError(`${name + fileSuffix}: ${path} is empty`)
}

export const integer = (fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ default: fallback, minimum, maximum })

/** A port to listen on. Depending on the setting, 0 means any free port or no port. */
export const port = (fallback: number) => integer(fallback, 0, 65_535)

export const text = (options: { pattern?: string; maxLength?: number } = {}) => Type.String({ default: '', ...options })

export const filledText = (fallback: string, pattern = '') => Type.String({ default: fallback, minLength: 1, pattern })

/** A service token. Optional, because a process may read its token from the data folder. */
export const token = () => Type.Optional(Type.String({ minLength: 16 }))

export const oneOf = <const Value extends string>(values: readonly Value[], fallback: Value) =>
  Type.Unsafe<Value>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { default: fallback },
    ),
  )

export const onOff = () => oneOf(['on', 'off'], 'on')

export const splitList = (list: string): string[] =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)

export interface SettingSchema {
  default?: unknown
  description?: string
  type?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  pattern?: string
  anyOf?: { const: string }[]
}

function ruleOf(schema: SettingSchema) {
  const { type, minimum, maximum, exclusiveMinimum, minLength = 1, pattern, description, anyOf } = schema
  if (anyOf) return `must be one of ${anyOf.map((literal) => literal.const).join(', ')}`
  if (type === 'integer') return `must be a whole number from ${minimum} to ${maximum}`
  if (type === 'number') return `must be a number above ${exclusiveMinimum}`
  if (pattern) return `is invalid: ${description}`
  return `must have at least ${minLength} characters`
}
