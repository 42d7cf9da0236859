/** An RGB picture with rectangles, smooth lines and text, written as PNG. */
import { crc32, deflateSync } from 'node:zlib';
import { linesOf, widthOf, type Point } from './stroke_font.ts';

export type Colour = readonly [red: number, green: number, blue: number];

export interface TextOptions {
  /** Height of capitals. */
  readonly size: number;
  readonly colour: Colour;
  /** Stroke width; default: an eighth of the size. */
  readonly weight?: number;
  readonly anchor?: 'start' | 'end';
  /** Read from bottom to top. */
  readonly upwards?: boolean;
}

export class Canvas {
  readonly pixels: Uint8Array;

  constructor(
    readonly width: number,
    readonly height: number,
    background: Colour,
  ) {
    this.pixels = new Uint8Array(3 * width * height);
    this.fill(0, 0, width, height, background);
  }

  fill(left: number, top: number, width: number, height: number, colour: Colour): void {
    for (let y = top; y < top + height; ++y) for (let x = left; x < left + width; ++x) this.pixels.set(colour, 3 * (y * this.width + x));
  }

  text(text: string, x: number, y: number, { size, colour, weight = size / 8, anchor = 'start', upwards = false }: TextOptions): void {
    const shift = anchor === 'end' ? -widthOf(text, size) : 0;
    const place = ([along, up]: Point): Point => (upwards ? [x - up, y - shift - along] : [x + shift + along, y - up]);
    const cover = new Map<number, number>();
    for (const line of linesOf(text, size))
      for (let i = 1; i < line.length; ++i) this.stroke(cover, place(line[i - 1]!), place(line[i]!), weight / 2);
    for (const [pixel, share] of cover)
      for (let c = 0; c < 3; ++c) {
        const old = this.pixels[3 * pixel + c]!;
        this.pixels[3 * pixel + c] = Math.round(old + share * (colour[c]! - old));
      }
  }

  /** Records the coverage of each pixel by a line with round ends. */
  private stroke(cover: Map<number, number>, [x0, y0]: Point, [x1, y1]: Point, radius: number): void {
    const [dx, dy] = [x1 - x0, y1 - y0];
    const length = dx * dx + dy * dy;
    const reach = radius + 1;
    const range = (a: number, b: number, most: number) =>
      [Math.max(0, Math.floor(Math.min(a, b) - reach)), Math.min(most, Math.ceil(Math.max(a, b) + reach))] as const;
    const [[left, right], [top, bottom]] = [range(x0, x1, this.width), range(y0, y1, this.height)];
    for (let y = top; y < bottom; ++y)
      for (let x = left; x < right; ++x) {
        const [px, py] = [x + 0.5 - x0, y + 0.5 - y0];
        const along = length === 0 ? 0 : Math.min(1, Math.max(0, (px * dx + py * dy) / length));
        const share = Math.min(1, radius + 0.5 - Math.hypot(px - along * dx, py - along * dy));
        const pixel = y * this.width + x;
        if (share > (cover.get(pixel) ?? 0)) cover.set(pixel, share);
      }
  }

  /** 8 bits per channel. */
  png(): Uint8Array {
    const rows = Buffer.alloc((3 * this.width + 1) * this.height);
    for (let y = 0; y < this.height; ++y) rows.set(this.pixels.subarray(3 * y * this.width, 3 * (y + 1) * this.width), (3 * this.width + 1) * y + 1);
    const header = Buffer.alloc(13);
    header.writeUInt32BE(this.width, 0);
    header.writeUInt32BE(this.height, 4);
    header.set([8, 2], 8);
    const chunk = (type: string, data: Uint8Array) => {
      const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
      const body = Buffer.concat([Buffer.from(type), data]);
      length.writeUInt32BE(data.length);
      check.writeUInt32BE(crc32(body));
      return Buffer.concat([length, body, check]);
    };
    return Buffer.concat([
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]),
      chunk('IHDR', header),
      chunk('IDAT', deflateSync(rows, { level: 9 })),
      chunk('IEND', new Uint8Array(0)),
    ]);
  }
}
