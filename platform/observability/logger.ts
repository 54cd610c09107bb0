import { type Logger, pino } from 'pino'

/**
 * Creates a logger that writes JSON lines to standard output. Gateway, core and delivery worker use
 * the same format (docs/operating.md). Callers must not log secrets or message content. The
 * redaction here is only a second protection.
 */
export function createLogger(part: string, level: string): Logger {
  return pino({
    level,
    base: { part },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: [
        '*.authorization',
        '*.accessGrant',
        '*.renewalToken',
        '*.assertion',
        '*.secret',
        '*.token',
        '*.body',
        '*.url',
        'headers',
        '*.headers',
        'err.metadata',
      ],
      censor: '[redacted]',
    },
  })
}
