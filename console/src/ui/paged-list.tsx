import type { ComponentChildren } from 'preact'
import { Button } from './button.tsx'
import { usePolling } from './load.ts'
import { FailureNotice, Loading } from './notice.tsx'
import type { usePages } from './pages.ts'
import { useRowKeys } from './row-keys.ts'

const pollMs = 20_000

interface PagedListProps<T> {
  list: Omit<ReturnType<typeof usePages>, 'items'> & { items: T[] }
  /** Plural name of the listed items. */
  name: string
  /** Content to show if the list has no items. */
  empty: ComponentChildren
  children: (item: T) => ComponentChildren
  everyMs?: number
}

/** Shows the rows of a paginated list, which it reloads, with a button that loads the next page. */
export function PagedList<T>({ list, name, empty, children, everyMs = pollMs }: PagedListProps<T>) {
  const { items, first, loading, failure, hasMore } = list
  useRowKeys('.table .table-row')
  usePolling(list.reload, everyMs)
  return (
    <>
      <FailureNotice failure={failure} retry={() => void list.reload()} />
      {first && <Loading label={`Loading ${name}`} />}
      {!first && !failure && items.length === 0 && empty}
      {items.length > 0 && <ul class="table">{items.map(children)}</ul>}
      {hasMore && (
        <Button kind="ghost more" disabled={loading} onClick={() => void list.more()}>
          Load earlier {name}
        </Button>
      )}
    </>
  )
}
