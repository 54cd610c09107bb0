import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'

/** An object without unknown fields. */
export const Strict = <Properties extends TProperties>(
  properties: Properties,
  options: object = {},
): TObject<Properties> => Type.Object(properties, { additionalProperties: false, ...options })

/** Text without control characters and lone surrogates. Patterns run in Unicode mode. */
const Line = (minLength: number, maxLength: number) =>
  Type.String({ minLength, maxLength, pattern: '^[^\\p{Cc}\\p{Cs}]*$' })

/** Stable per logical operation. */
export const OperationId = Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' })
export const Identifier = Line(1, 128)
export const OpaqueToken = Line(1, 512)
export const EventId = Line(0, 256)
/** Advisory: the core repairs or drops it, so any text is accepted. */
export const Locale = Type.String({
  description: 'Locale tag (BCP 47). `de_DE` is read as `de-DE`; an invalid tag is dropped.',
})

/**
 * Limits that are settings. The cores have the same settings, and the public configuration shows
 * them.
 */
export interface Bounds {
  /** Code points. */
  bodyMaxLength: number
  /** Size of the page context as JSON in the request. */
  pageContextSentMaxBytes: number
  historyPageMax: number
}

/** Not only white space; no control characters except tab and newline; no lone surrogates. */
export const MessageBody = ({ bodyMaxLength }: Bounds) =>
  Type.String({
    minLength: 1,
    maxLength: bodyMaxLength,
    pattern: '^(?=\\s*\\S)(?:[\\t\\n]|[^\\p{Cc}\\p{Cs}])*$',
    description: 'CRLF and CR are converted to LF first.',
  })

/**
 * Advisory: the core repairs values. Only unknown fields, wrong types and the total size are
 * rejected.
 */
export const PageContext = ({ pageContextSentMaxBytes }: Bounds) =>
  Strict(
    {
      url: Type.String({ description: 'http or https. Query, fragment and user info are removed.' }),
      title: Type.Optional(Type.String({ description: 'Cut to 256 code points.' })),
      referrer: Type.Optional(Type.String({ description: 'Cut to its origin.' })),
      viewport: Type.Optional(Strict({ width: Type.Number(), height: Type.Number() })),
    },
    {
      maxJsonBytes: pageContextSentMaxBytes,
      description: `The page of the visitor: at most ${pageContextSentMaxBytes} bytes. No value is rejected: control characters and lone surrogates are removed, long text is cut, and an invalid url, referrer or viewport is dropped.`,
      examples: [{ url: 'https://shop.example/prices', title: 'Prices', viewport: { width: 1280, height: 720 } }],
    },
  )
export type PageContext = Static<ReturnType<typeof PageContext>>

/** RFC 3339, UTC, milliseconds. */
export const Time = Type.String({ format: 'date-time' })
export const Sequence = Type.Integer({ minimum: 0 })
export const NoQuery = Strict({})
export const OneOf = <const Names extends readonly string[]>(names: Names) =>
  Type.Unsafe<Names[number]>({ type: 'string', enum: names })

/**
 * One of these names in an answer. Its type stays `string`, because the value comes from the core.
 */
export const Named = (...names: string[]) => Type.String({ enum: names })

/** Body of every failure (specification, section 2.5). */
export const Envelope = Strict({
  code: Type.String(),
  retryable: Type.Boolean(),
  terminal: Type.Boolean(),
  retryAfter: Type.Optional(Type.Integer({ minimum: 1 })),
  correlationId: Type.String(),
  issues: Type.Optional(Type.Array(Strict({ path: Type.String(), rule: Type.String() }))),
})

/** The answers of a route, plus the envelope for every failure. */
export const Answers = <const Own extends Record<number, TSchema>>(own: Own) => ({
  ...own,
  '4xx': Envelope,
  '5xx': Envelope,
})
