// Writes docs/errors.md from the table of codes in proto/service/error/v1/error.proto: `npm run docs:errors`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicErrors } from '../gateway/errors.ts'

const yesNo = (value: boolean) => (value ? 'yes' : 'no')

/** The document as the protos have it. */
export function errorsDocument(): string {
  const errors = publicErrors()
  return `# Errors

Every failure of the public API has this body and nothing else, as \`application/json\`:

\`\`\`json
{"code":"RateLimited","retryable":true,"terminal":false,"retryAfter":3,"correlationId":"…"}
\`\`\`

- \`retryable\`: the same request may be sent again, with the same \`Idempotency-Key\`, after a pause that grows.
- \`terminal\`: the session, the installation or the page is at its end. Stop every automatic retry and show it.
- \`retryAfter\`: seconds to wait, where that is known. A 429 and a 503 say the same in \`Retry-After\`.
- \`correlationId\`: also in \`X-Correlation-Id\`. Say it when you ask about a failure.
- \`issues\`, with \`ValidationFailed\` only: \`{path, rule}\` of each broken rule, the JSON pointer of the field and the rule's name.

Decide by \`retryable\` and \`terminal\`, not by the code: new codes may come. Internal services answer with the same codes, in a
\`service.error.v1.ErrorInfo\`. This page is written from \`proto/service/error/v1/error.proto\` (\`npm run docs:errors\`).

| Code | HTTP | Retryable | Terminal |
|---|---|---|---|
${errors
  .map(
    ({ code, httpStatus, retryable, terminal }) =>
      `| [\`${code}\`](#${code.toLowerCase()}) | ${httpStatus} | ${yesNo(retryable)} | ${yesNo(terminal)} |`,
  )
  .join('\n')}

${errors.map(({ code, meaning, remedy }) => `## ${code}\n\n${meaning}\n\n**What to do:** ${remedy}\n`).join('\n')}`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../docs/errors.md'), errorsDocument())
