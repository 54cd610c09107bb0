/** Names of the lamp kinds. Each key is the last part of the page's path. */
export const lampKinds = { table: 'Table lamps', pendant: 'Pendant lamps', floor: 'Floor lamps' }
export type LampKind = keyof typeof lampKinds

export interface Lamp {
  id: string
  name: string
  kind: LampKind
  /** Price in whole euros. */
  price: number
  summary: string
  story: string
  facts: Record<string, string>
}

export const lamps: readonly Lamp[] = [
  {
    id: 'fjord',
    name: 'Fjord',
    kind: 'table',
    price: 189,
    summary: 'Opal glass on turned ash',
    story: 'A sphere of mouth-blown opal glass on a foot of ash. Its soft light fills a corner without glare.',
    facts: { Height: '38 cm', Bulb: 'E27, 7 W included', Cable: '2 m, linen', 'Made in': '8 days' },
  },
  {
    id: 'skog',
    name: 'Skog',
    kind: 'pendant',
    price: 249,
    summary: 'A wide shade of bent birch',
    story: 'Twelve layers of birch veneer, bent over a mould. It lights a table for eight with a wide, warm circle.',
    facts: { Width: '52 cm', Bulb: 'E27, 9 W included', Cable: '3 m, adjustable', 'Made in': '12 days' },
  },
  {
    id: 'myr',
    name: 'Myr',
    kind: 'table',
    price: 159,
    summary: 'A reading lamp with a long arm',
    story: 'Black steel with two joints that stay in place, and a head that lights the page and nothing else.',
    facts: { Reach: '61 cm', Bulb: 'GU10, 5 W included', Dimmer: 'In the foot', 'Made in': '6 days' },
  },
  {
    id: 'holm',
    name: 'Holm',
    kind: 'floor',
    price: 329,
    summary: 'Three legs of oak, one linen shade',
    story: 'A lamp for the reading chair. The shade is sewn by hand; when it fades, we sew you a new one.',
    facts: { Height: '151 cm', Bulb: 'E27, 12 W included', Switch: 'By foot', 'Made in': '14 days' },
  },
  {
    id: 'vind',
    name: 'Vind',
    kind: 'pendant',
    price: 209,
    summary: 'Folded paper, light as a sail',
    story: 'One sheet of paper and forty folds, without glue. It turns a little when a door opens.',
    facts: { Width: '44 cm', Bulb: 'E27, 7 W included', Cable: '3 m, adjustable', 'Made in': '5 days' },
  },
  {
    id: 'strand',
    name: 'Strand',
    kind: 'floor',
    price: 279,
    summary: 'A slim bow of steel with a glass drop',
    story: 'A bow over the sofa with a drop of smoked glass at its end. Its foot is a beach stone.',
    facts: { Height: '178 cm', Bulb: 'G9, 4 W included', Foot: 'Granite, 9 kg', 'Made in': '10 days' },
  },
]

export const findLamp = (id: string): Lamp | undefined => lamps.find((lamp) => lamp.id === id)

export const isLampKind = (kind: string): kind is LampKind => Object.hasOwn(lampKinds, kind)
