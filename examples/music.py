"""A music player whose tools follow its library and its queue.

transom open examples/music.py show_player       the player, in your browser
transom check --call examples/music.py           checks it against the contract
python examples/music.py                         serves it over stdio

The server:
    show_player()                         the model calls it, and the View opens
    list_playlists()                      the model calls it, and the answer is all there is
    keep_track(id)                        only the View: a track from the shop joins the library
    keep_in_playlist(playlist_id, id)     only the View: a track joins a playlist

The View, for the model:
    get_player()                          what plays, the queue, the playlists
    play_track(id)                        `id` is an enum of the library as it is now
    add_to_queue(id)                      the same
    remove_from_queue(position)           disabled while the queue is empty: "the queue is empty"
    add_to_playlist(playlist_id, id)      `playlist_id` is an enum of the user's playlists
    add_to_library(id)                    `id` is an enum of what the shop still has; after it,
                                          play_track takes one more id

At the start `ode-to-joy`, `greensleeves`, `fur-elise` and `frere-jacques` are in the library,
`canon-in-d`, `morning-mood` and `when-the-saints` in the shop. The playlists are `focus` and
`sunday`. The tunes are made in the page, from the notes below.
"""

from pathlib import Path

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from transom import ToolError
from transom.server import Views


class Track(msgspec.Struct, frozen=True):
    """One track. Its notes are written as PITCH/BEATS, `-` is a rest."""

    id: str
    title: str
    artist: str
    tempo: int
    seconds: int
    notes: str


class Playlist(msgspec.Struct):
    """Some tracks, by id, under a name."""

    id: str
    name: str
    tracks: list[str]


class Player(msgspec.Struct):
    """All that the View shows."""

    library: list[Track]
    shop: list[Track]
    playlists: list[Playlist]


TRACKS = {
    track.id: track
    for track in (
        Track(
            "ode-to-joy", "Ode to Joy", "Ludwig van Beethoven", 112, 137,
            "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4 E4/1.5 D4/.5 D4/2 "
            "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4 D4/1.5 C4/.5 C4/2",
        ),
        Track(
            "greensleeves", "Greensleeves", "Traditional", 138, 167,
            "A4 C5/2 D5 E5/1.5 F5/.5 E5 D5/2 B4 G4/1.5 A4/.5 B4 C5/2 A4 A4/1.5 G#4/.5 A4 "
            "B4/2 G#4 E4/2 A4 C5/2 D5 E5/1.5 F5/.5 E5 D5/2 B4 G4/1.5 A4/.5 B4 "
            "C5/1.5 B4/.5 A4 G#4/1.5 F#4/.5 G#4 A4/3",
        ),
        Track(
            "fur-elise", "Für Elise", "Ludwig van Beethoven", 144, 175,
            "E5/.5 D#5/.5 E5/.5 D#5/.5 E5/.5 B4/.5 D5/.5 C5/.5 A4/1.5 C4/.5 E4/.5 A4/.5 "
            "B4/1.5 E4/.5 G#4/.5 B4/.5 C5/1.5 E4/.5 E5/.5 D#5/.5 E5/.5 D#5/.5 E5/.5 B4/.5 "
            "D5/.5 C5/.5 A4/1.5 C4/.5 E4/.5 A4/.5 B4/1.5 E4/.5 C5/.5 B4/.5 A4/2",
        ),
        Track(
            "frere-jacques", "Frère Jacques", "Traditional", 116, 132,
            "C4 D4 E4 C4 C4 D4 E4 C4 E4 F4 G4/2 E4 F4 G4/2 G4/.5 A4/.5 G4/.5 F4/.5 E4 C4 "
            "G4/.5 A4/.5 G4/.5 F4/.5 E4 C4 C4 G3 C4/2 C4 G3 C4/2",
        ),
        Track(
            "canon-in-d", "Canon in D", "Johann Pachelbel", 84, 206,
            "F#5/2 E5/2 D5/2 C#5/2 B4/2 A4/2 B4/2 C#5/2 "
            "D5 F#5 A5 G5 F#5 D5 F#5 E5 D5 B4 D5 A4 G4 B4 A4 G4",
        ),
        Track(
            "morning-mood", "Morning Mood", "Edvard Grieg", 96, 188,
            "G5 E5 D5 C5 D5 E5 G5 E5 D5 C5 D5/.5 E5/.5 D5/.5 E5/.5 "
            "G5 E5 G5 A5 E5 A5 G5 E5 D5 C5/3",
        ),
        Track(
            "when-the-saints", "When the Saints Go Marching In", "Traditional", 168, 151,
            "- C4 E4 F4 G4/4 - C4 E4 F4 G4/4 - C4 E4 F4 G4/2 E4/2 C4/2 E4/2 D4/4 "
            "- E4 E4 D4 C4/3 C4 E4/2 G4/2 G4 F4/3 - - E4 F4 G4/2 E4/2 C4/2 D4/2 C4/4",
        ),
    )
}  # fmt: skip

library = ["ode-to-joy", "greensleeves", "fur-elise", "frere-jacques"]
playlists = [
    Playlist("focus", "Focus", ["fur-elise"]),
    Playlist("sunday", "Sunday morning", ["greensleeves", "frere-jacques"]),
]


def player() -> Player:
    shop = [track for id, track in TRACKS.items() if id not in library]
    return Player([TRACKS[id] for id in library], shop, playlists)


def summary(shown: Player) -> str:
    """Say in a line or two what the View shows: a model needs no notes."""
    titles = ", ".join(track.title for track in shown.library)
    offers = ", ".join(track.title for track in shown.shop) or "nothing"
    return f"In the library: {titles}. In the shop: {offers}."


views = Views()

page = views.add(
    "ui://music/player.html",
    html=Path(__file__).with_name("music.html"),
    prefers_border=True,
    title="Music player",
    description="A library to play from, a queue, and playlists.",
)


@views.tool(
    opens=page,
    title="Show the music player",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_player() -> Player:
    """Show the user's music player, with the library, the queue and the playlists."""
    return player()


WRITES = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}


@views.helper(title="Put a track into the library", annotations=WRITES, text=summary)
def keep_track(id: str) -> Player:
    """Put a track from the shop into the library."""
    if id not in TRACKS:
        raise ToolError(f"The shop has no track {id}.")
    if id not in library:
        library.append(id)
    return player()


@views.helper(title="Put a track into a playlist", annotations=WRITES, text=summary)
def keep_in_playlist(playlist_id: str, id: str) -> Player:
    """Put a track of the library into a playlist."""
    if id not in library:
        raise ToolError(f"There is no {id} in the library.")
    for playlist in playlists:
        if playlist.id == playlist_id:
            if id not in playlist.tracks:
                playlist.tracks.append(id)
            return player()
    raise ToolError(f"There is no playlist {playlist_id}.")


server = MCPServer("music", version="1.0.0", extensions=[views])


@server.tool(
    title="List playlists",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def list_playlists() -> dict[str, list[str]]:
    """List the user's playlists and the titles in them."""
    return {each.name: [TRACKS[id].title for id in each.tracks] for each in playlists}


if __name__ == "__main__":
    server.run()
