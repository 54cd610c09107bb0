import type { ServiceClient } from '../../client/client.ts'
import { element } from '../elements/elements.ts'
import type { RatingCard } from '../forms/rating-card.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'
import type { LoadPart } from '../parts.ts'

interface RatingPlaceDeps {
  client: ServiceClient
  texts: WidgetTexts
  dates: Dates
  composer: { focus(): void }
  announce(text: string): void
  addStyles(css: string): void
  loadPart: LoadPart
  /** The element that gets the card, as its first child. */
  place: HTMLElement
}

/** Returns a function that shows the rating and the transcript while the conversation is closed. */
export function createRatingPlace({ client, composer, place, ...deps }: RatingPlaceDeps) {
  const box = element('div', { hidden: true })
  let card: RatingCard | undefined
  let isLoading = false
  place.prepend(box)

  return show

  function show() {
    const isClosed = client.presence().isClosed && !client.ended()
    if (isClosed && !card && !isLoading) void load()
    const hadFocus = box.contains((box.getRootNode() as ShadowRoot).activeElement)
    box.hidden = !isClosed || !card
    if (hadFocus && !isClosed) composer.focus()
    card?.update()
  }

  async function load() {
    isLoading = true
    // If the import fails, the next event tries again.
    const part = await deps.loadPart('rating').catch(() => undefined)
    isLoading = false
    if (!part) return
    deps.addStyles(part.ratingStyles)
    card = part.createRatingCard({ client, ...deps })
    box.append(card.element)
    show()
  }
}
