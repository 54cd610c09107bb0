import { useConsole } from '../../console-context.ts'
import { EntryList } from '../../ui/form.tsx'
import { useAction, useLoad } from '../../ui/load.tsx'
import { FailureNotice } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'

const maxTags = 10

/** Adds and removes tags of the conversation. */
export function TagSection({ thread }: { thread: Thread }) {
  const { api, announcer } = useConsole()
  const { failure, run } = useAction()
  const known = useLoad(async () => (await api.messaging.listTags({})).tags, [thread])
  const tags = thread.conversation.value?.tags ?? []

  function problemOf(tag: string) {
    if (tags.length >= maxTags) return `A conversation can have ${maxTags} tags.`
    return [...tag].length > 40 ? 'A tag has at most 40 characters.' : undefined
  }

  /** Resolves to false if the change is not stored. */
  function change(next: readonly string[]) {
    const added = next.find((tag) => !tags.includes(tag))
    const removed = tags.find((tag) => !next.includes(tag))
    return run(async () => {
      if (added !== undefined) await thread.addTag(added)
      else if (removed !== undefined) await thread.removeTag(removed)
      announcer.say(added === undefined ? `Tag ${removed} removed.` : `Tag ${added} added.`)
    })
  }

  return (
    <section class="details-section tags">
      <EntryList
        label="Tags"
        hint="Visitors never see tags."
        placeholder="Add a tag"
        entries={tags}
        suggestions={known.value}
        addsOnBlur={false}
        problemOf={problemOf}
        onChange={change}
      />
      <FailureNotice failure={failure} />
    </section>
  )
}
