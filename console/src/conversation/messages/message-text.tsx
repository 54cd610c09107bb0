import { linkify } from '../../../../browser/chat/linkify.ts'

/** Shows plain text with links. The links send no referrer. */
export function MessageText({ text }: { text: string }) {
  return (
    <>
      {linkify(text).map((part, index) =>
        part.href === undefined ? (
          part.text
        ) : (
          <a
            key={`${index} ${part.href}`}
            href={part.href}
            target={part.href.startsWith('http') ? '_blank' : undefined}
            rel="noopener noreferrer nofollow"
          >
            {part.text}
          </a>
        ),
      )}
    </>
  )
}
