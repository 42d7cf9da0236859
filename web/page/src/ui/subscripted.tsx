/** "Through W_O" with the O below the line. The underscore has no width, but is there for whoever copies or hears it. */
export function Subscripted({ children }: { children: string }) {
  return (
    <>
      {children.split(/(_\w+)/).map((piece, i) =>
        piece.startsWith('_') ? (
          <sub key={i}>
            <span class="unseen">_</span>
            {piece.slice(1)}
          </sub>
        ) : (
          piece
        ),
      )}
    </>
  );
}
