import type { onRouteHookHandler } from 'fastify'
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { contractLimits } from '../../contract/limits.ts'
import type { ProtoFields } from '../../contract/proto-fields.ts'

/** Schema of an object that rejects unknown fields. */
export const Strict = <Properties extends TProperties>(
  properties: Properties,
  options: object = {},
): TObject<Properties> => Type.Object(properties, { additionalProperties: false, ...options })

/**
 * Schemas of the fields of a proto. If a field has no schema and is not in `Left`, the code does
 * not compile.
 */
export type SchemasOf<Type, Left extends keyof Type = never> = Record<keyof Omit<ProtoFields<Type>, Left>, TSchema>

/** Pattern of a text without control characters or lone surrogates. Ajv runs it in Unicode mode. */
const LINE = '^[^\\p{Cc}\\p{Cs}]*$'

/**
 * Pattern of a text that is not only white space. It excludes lone surrogates, and control
 * characters other than tab and newline.
 */
const TEXT = '^(?=\\s*\\S)(?:[\\t\\n]|[^\\p{Cc}\\p{Cs}])*$'

/** Pattern of a text without lone surrogates. */
const WELL_FORMED = '^\\P{Cs}*$'

/**
 * Equivalents of these patterns for the API document. They use no Unicode properties or lookaheads,
 * because many languages do not have them. They also accept lone surrogates, which valid UTF-8
 * cannot contain.
 */
export const portablePatterns: Record<string, string> = {
  [WELL_FORMED]: '^[\\s\\S]*$',
  [LINE]: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
  [TEXT]: '^[^\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]*$',
}

/** Schema of a text without lone surrogates. */
export const WellFormed = () => Type.String({ pattern: WELL_FORMED })

/** Schema of a text without control characters or lone surrogates. */
export const Line = (minLength: number, maxLength: number) => Type.String({ minLength, maxLength, pattern: LINE })

/** Id of a logical operation. A retry of the operation sends the same id. */
export const OperationId = Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' })
export const Identifier = Line(1, 128)
export const OpaqueToken = Line(1, 512)
export const EventId = Line(0, 256)
/** Language of the visitor. Any text is accepted: the core repairs or drops an invalid locale. */
export const Locale = Type.String({
  description: 'Locale tag (BCP 47). `de_DE` is read as `de-DE`; an invalid tag is dropped.',
})

/**
 * Text of a message. It must not be only white space. Control characters except tab and newline,
 * and lone surrogates, are not allowed.
 */
export const MessageBody = Type.String({
  minLength: 1,
  maxLength: contractLimits.bodyMaxLength,
  pattern: TEXT,
  description: 'CRLF, CR and the soft line ends U+000B, U+000C, U+0085, U+2028 and U+2029 are converted to LF first.',
})

/**
 * The page that the visitor views. The core repairs its values. The schema rejects only unknown
 * fields, wrong types and too large objects.
 */
export const PageContext = Strict(
  {
    url: Type.String({ description: 'http or https. Query, fragment and user info are removed.' }),
    title: Type.Optional(Type.String({ description: 'Cut to 256 code points.' })),
    referrer: Type.Optional(Type.String({ description: 'Cut to its origin.' })),
    viewport: Type.Optional(Strict({ width: Type.Number(), height: Type.Number() })),
  },
  {
    maxJsonBytes: contractLimits.pageContextSentMaxBytes,
    description: `The page of the visitor: at most ${contractLimits.pageContextSentMaxBytes} bytes. No value is rejected: control characters and lone surrogates are removed, long text is cut, and an invalid url, referrer or viewport is dropped.`,
    examples: [{ url: 'https://shop.example/prices', title: 'Prices', viewport: { width: 1280, height: 720 } }],
  },
)
export type PageContext = Static<typeof PageContext>

/** A time in RFC 3339 format, in UTC with milliseconds. */
export const Time = Type.String({ format: 'date-time' })
/** Score of a rating. 5 is the best. */
export const Score = Type.Integer({ minimum: 1, maximum: 5 })
export const Sequence = Type.Integer({ minimum: 0 })
export const OneOf = <const Names extends readonly string[]>(names: Names) =>
  Type.Unsafe<Names[number]>({ type: 'string', enum: names })

/**
 * Schema of a string in an answer that must be one of `names`. Its TypeScript type stays `string`,
 * because the value comes from the core.
 */
export const Named = (...names: string[]) => Type.String({ enum: names })

/** Makes each route without a query schema reject every query. */
export const refuseQuery: onRouteHookHandler = (route) => {
  route.schema = { querystring: Strict({}), ...route.schema }
}

/** Body of every failure (specification, section 2.5). */
export const Envelope = Strict({
  code: Type.String(),
  retryable: Type.Boolean(),
  terminal: Type.Boolean(),
  retryAfter: Type.Optional(Type.Integer({ minimum: 1 })),
  correlationId: Type.String(),
  issues: Type.Optional(Type.Array(Strict({ path: Type.String(), rule: Type.String() }))),
})
